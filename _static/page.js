// What scrolls within the page can be reached by the keyboard, and a link into a page arrives where it leads.
"use strict";

const LONG = 230;     // pixels: formulas within a sentence that a phone may have no room for

// A page that is opened at an anchor appears when what its scripts fold or add above it has been folded or added.
const root = document.documentElement;
root.classList.toggle("settling", location.hash !== "");

addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("button.toggle-button")) {
    button.setAttribute("aria-label", button.closest(".admonition-title").textContent.trim());
  }
  for (const formula of document.querySelectorAll("article mjx-container:not([display=true])")) {
    if (formula.getBoundingClientRect().width > LONG) formula.classList.add("long");    // it scrolls on a phone
  }
});

const wait = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

async function arrive() {
  if (!root.classList.contains("settling")) return;
  await Promise.race([document.fonts.ready, wait(1000)]);
  document.getElementById(location.hash.slice(1).split("?")[0])?.scrollIntoView();
  root.classList.remove("settling");
}
addEventListener("load", arrive);
setTimeout(arrive, 4000);       // whatever is still on its way

// A folded box opens by a click anywhere in its title: the theme's script stumbles over formulas and code in it.
addEventListener("click", (event) => {
  const title = event.target.closest?.(".admonition.toggle > .admonition-title");
  if (!title || title === event.target || event.target.closest(".toggle-button")) return;
  event.stopPropagation();
  title.querySelector(".toggle-button").click();
}, { capture: true });

// Paper is white, and cannot unfold anything.
let theme, folded = [];
addEventListener("beforeprint", () => {
  theme = root.dataset.theme;
  root.dataset.theme = "light";
  folded = [...document.querySelectorAll("article details:not([open], .hide)")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  root.dataset.theme = theme;
  for (const one of folded) one.open = false;
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
  watch("article mjx-container:is([display=true], .long)");
});
