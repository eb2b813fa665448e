// What scrolls within the page can be reached by the keyboard, and a link into a page arrives where it leads.
"use strict";

const LONG = 230;     // pixels: formulas within a sentence that a phone may have no room for

// A page that is opened at an anchor appears when what its scripts fold or add above it has been folded or added.
const root = document.documentElement;
root.classList.toggle("settling", location.hash !== "");

addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll("article mjx-container:not([display=true])")) {
    if (formula.getBoundingClientRect().width > LONG) formula.classList.add("long");    // it scrolls on a phone
  }
});

addEventListener("load", async () => {
  if (!root.classList.contains("settling")) return;
  await document.fonts.ready;
  document.getElementById(location.hash.slice(1).split("?")[0])?.scrollIntoView();
  root.classList.remove("settling");
});

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
  watch("article mjx-container[display=true]");
});
