// Keeps short cells on one line, and lets the reader sort long tables by a column: its heading becomes a button.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const SHORT = 18;   // characters, as of an interval; narrow screens scroll sideways in place of breaking it
  for (const cell of document.querySelectorAll("table.results tbody :is(th, td:not(.number))")) {
    cell.classList.toggle("short", cell.textContent.length <= SHORT);
  }

  // "−12.5 s" -> -12.5; what does not begin with a number counts as the smallest
  const number = (cell) => {
    const value = parseFloat(cell.textContent.replace("\u2212", "-"));
    return Number.isNaN(value) ? -Infinity : value;
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const numeric = head.classList.contains("number");
        const words = (a, b) => a.textContent.localeCompare(b.textContent, "en", { numeric: true });
        const compare = (a, b) => Math.sign(number(a) - number(b)) || (numeric ? 0 : words(a, b));
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (down ? -1 : 1) * compare(a.cells[column], b.cells[column]));
        table.tBodies[0].append(...rows);
      });
    });
  }
});
