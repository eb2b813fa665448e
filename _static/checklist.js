/* Lists to tick on the page for self-study. What is ticked is kept in this browser, and nowhere else. */
"use strict";

(() => {
  const KEY = "pepcore-plan";

  function kept() {
    try { return new Set(JSON.parse(localStorage.getItem(KEY))); } catch { return new Set(); }
  }

  function keep(ticked) {
    try { localStorage.setItem(KEY, JSON.stringify([...ticked])); } catch { /* a browser that keeps nothing: the page still works */ }
  }

  function start() {
    const boxes = [...document.querySelectorAll(".checklist input[type=checkbox]")];
    const line = document.querySelector(".checklist-progress");
    if (!boxes.length || !line) return;
    const ticked = kept();
    const show = () => {
      const done = boxes.filter(box => box.checked).length;
      line.querySelector("[role=status]").textContent = `${done} of ${boxes.length} done. Your ticks stay in this browser.`;
    };
    for (const box of boxes) {
      box.checked = ticked.has(box.dataset.item);
      box.addEventListener("change", () => {
        const now = kept();     // another tab may have ticked meanwhile
        if (box.checked) now.add(box.dataset.item);
        else now.delete(box.dataset.item);
        keep(now);
        show();
      });
    }
    line.querySelector("button").addEventListener("click", () => {
      const now = kept();
      for (const box of boxes) {
        box.checked = false;
        now.delete(box.dataset.item);
      }
      keep(now);
      show();
    });
    show();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
