// What scrolls within the page can be reached by the keyboard, as soon as it does scroll.
"use strict";
addEventListener("load", () => {
  const scrolls = (part) => part.scrollWidth > part.clientWidth + 1;
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (scrolls(target)) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const watch = (selector) => document.querySelectorAll(selector).forEach((part) => sizes.observe(part));
  watch("article pre, article table:not(.results)");
  window.MathJax?.startup?.promise?.then(() => watch("article mjx-container[display=true]"));
});
