// What scrolls within the page can be reached by the keyboard.
"use strict";
addEventListener("load", () => {
  const parts = document.querySelectorAll("article pre, article table:not(.results), article mjx-container[display=true]");
  const mark = () => {
    for (const part of parts) {
      if (part.scrollWidth > part.clientWidth + 1) part.tabIndex = 0;
      else if (!part.matches("mjx-container")) part.removeAttribute("tabindex");
    }
  };
  mark();
  addEventListener("resize", mark);
  for (const details of document.querySelectorAll("article details")) details.addEventListener("toggle", mark);
  window.MathJax?.startup?.promise?.then(mark);
});
