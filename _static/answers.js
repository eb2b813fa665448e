/* Answers in the page: each box holds a declaration of chapters/checks/ as JSON and is judged by it as Python judges.
   What was answered is kept in this browser, and nowhere else. */
"use strict";

(() => {
  const KEY = "pepcore-answers";
  const NUMBER = /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;

  const THOUSANDS = /(\d)[ \u00a0\u2009\u202f](?=\d{3}(\D|$))/g;
  const GROUPED = /^[+-]?[1-9]\d{0,2}(,\d{3})+$/;
  const INFINITE = /^[+-]?(inf(inity)?|∞)$/i;

  /* The number behind a text such as 0.25, 0,25, 1/4, 2.5e-1, −3, 60 000 or inf, or what to say of it: see read_number in Python.
     A comma before three digits parts thousands if there are more of them, or if the right number is as large. */
  function readNumber(text, missing, right) {
    let plain = text.trim().replaceAll("−", "-").replaceAll("–", "-").replace(THOUSANDS, "$1");
    if (GROUPED.test(plain) && (Math.abs(right.near) >= 1000 || plain.split(",").length > 2)) plain = plain.replaceAll(",", "");
    if (!plain) return { said: missing };
    if (INFINITE.test(plain)) return { value: plain.startsWith("-") ? -Infinity : Infinity };
    const parts = plain.split("/").map(part => part.trim());
    const values = parts.map(part => NUMBER.test(part) ? Number(part.replace(",", ".")) : NaN);
    const value = values.length === 1 ? values[0] : values.length === 2 ? values[0] / values[1] : NaN;
    if (Number.isFinite(value)) return { value };
    return { said: `“${[...text.trim()].slice(0, 30).join("")}” is not a number. Write one like 0.25, 1/4 or 2.5e-1.` };
  }

  function fits(condition, value) {
    if (condition === null) return true;
    if ("near" in condition) return Math.abs(value - condition.near) <= condition.tolerance;
    if ("whole" in condition) return Number.isFinite(value) && value !== Math.floor(value);
    return (condition.low === null || condition.low <= value) && (condition.high === null || value <= condition.high);
  }

  /* null for a right answer, else what to look at; the order is that of Python. */
  function judgeNumbers(declared, texts) {
    const read = texts.map((text, i) => readNumber(text, declared.missing, declared.right[i]));
    const unreadable = read.find(one => "said" in one);
    if (unreadable) return unreadable.said;
    const values = read.map(one => one.value);
    const right = declared.right.map((condition, i) => fits(condition, values[i]));
    if (right.every(Boolean)) return null;
    const mistake = declared.mistakes.find(one => one.pattern.every((condition, i) => fits(condition, values[i])));
    return mistake ? mistake.hint : declared.otherwise[right.indexOf(false)];
  }

  const judgeChoice = (declared, [chosen]) => chosen === "" ? declared.which : declared.hints[Number(chosen)];
  const judge = (declared, given) => (declared.kind === "choice" ? judgeChoice : judgeNumbers)(declared, given);

  function kept() {
    try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; }
  }

  function keep(all) {
    try { localStorage.setItem(KEY, JSON.stringify(all)); } catch { /* a browser that keeps nothing: the page still works */ }
  }

  function boxOf(form) {
    const declared = JSON.parse(form.querySelector("script").textContent);
    const fields = [...form.querySelectorAll("input")], output = form.querySelector("output");
    const name = form.dataset.answer;
    const given = () => declared.kind === "choice"
      ? [fields.find(field => field.checked)?.value ?? ""] : fields.map(field => field.value);

    function show(said) {
      form.dataset.state = said === null ? "right" : "wrong";
      output.textContent = said === null ? ["Correct.", declared.why].filter(Boolean).join(" ") : `Not yet: ${said}`;
    }

    /* The first field that holds no number says so, and takes the cursor of whoever has just asked. */
    function point(asked) {
      if (declared.kind === "choice") return;
      const first = fields.findIndex((field, i) => "said" in readNumber(field.value, "", declared.right[i]));
      fields.forEach((field, i) => i === first ? field.setAttribute("aria-invalid", "true") : field.removeAttribute("aria-invalid"));
      if (asked && first >= 0) fields[first].focus();
    }

    function fill(texts) {
      fields.forEach((field, i) => {
        if (declared.kind === "choice") field.checked = field.value === texts[0];
        else field.value = texts[i] ?? "";
      });
    }

    function empty() {
      fill([]);
      delete form.dataset.state;
      fields.forEach(field => field.removeAttribute("aria-invalid"));
      output.textContent = "";
    }

    form.addEventListener("submit", event => {
      event.preventDefault();
      show(judge(declared, given()));
      point(true);
      keep({ ...kept(), [name]: given() });
      form.dispatchEvent(new CustomEvent("answered", { bubbles: true }));
    });
    const titles = [...document.querySelectorAll(".exercise .caption-number")];
    const above = titles.filter(one => one.compareDocumentPosition(form) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
    if (above && !form.closest(".answer-quiz")) {
      const named = `Your answer to ${above.textContent.trim()}`;
      form.querySelector("legend").textContent = named;
      form.querySelector("input[aria-label]")?.setAttribute("aria-label", named);
    }
    const before = kept()[name];
    if (before) {
      fill(before);
      show(judge(declared, given()));
      point(false);
    }
    return { name, form, empty, isRight: () => form.dataset.state === "right" };
  }

  /* One line above the first box: how many are right, and the button that forgets the answers of this page. */
  function progress(boxes) {
    const line = document.createElement("p"), said = document.createElement("span"), clear = document.createElement("button");
    line.className = "answers-progress";
    clear.type = "button";
    clear.textContent = "Clear my answers on this page";
    said.setAttribute("role", "status");
    line.append(said, clear);
    const show = () => {
      said.textContent = `${boxes.filter(box => box.isRight()).length} of ${boxes.length} answered right. `
        + "Your answers stay in this browser.";
    };
    clear.addEventListener("click", () => {
      const all = kept();
      boxes.forEach(box => { delete all[box.name]; box.empty(); });
      keep(all);
      show();
    });
    document.addEventListener("answered", show);
    show();
    const first = boxes[0].form;
    const place = first.closest(".answer-quiz") ?? first;
    place.before(line);
  }

  function start() {
    const forms = [...document.querySelectorAll("form.answer")];
    if (forms.length) progress(forms.map(boxOf));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
