// Starts reveal.js, fits what is too large, and opens a deck at the slider that an address names.
"use strict";

// Of a slide that is higher or wider than the page, everything below the heading is drawn smaller.
function fit(slide) {
  const body = slide.querySelector(".body");
  if (!body) return;
  const room = slide.clientHeight - body.offsetTop - 20;
  const wide = Math.max(...[...body.querySelectorAll("mjx-container > mjx-math")].map((one) => one.scrollWidth / one.closest("mjx-container").clientWidth), 1);
  const scale = Math.min(1, room / body.scrollHeight, 1 / wide);
  if (scale < 1) body.style.zoom = scale;
}

const asked = location.hash;
const deck = new Reveal(document.querySelector(".reveal"), {
  width: 1280, height: 800, margin: 0.02, center: false, hash: true, slideNumber: "c/t", transition: "none",
  pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1,
  keyboardCondition: (event) => !event.target.closest?.(".slider-control"),    // arrow keys move the slider, once it is in use
});

deck.initialize().then(() => {
  deck.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  fit(deck.getCurrentSlide());
  const figure = asked.startsWith("#fig-") && document.getElementById(decodeURIComponent(asked.slice(1)).split("?")[0]);
  if (figure) deck.slide(deck.getIndices(figure.closest("section")).h);
  document.documentElement.dataset.ready = "";
});
