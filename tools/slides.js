// Starts reveal.js, fits what is too large, and opens a deck at the slider that an address names.
"use strict";

const PAGE = { width: 1280, height: 800 };

// What stands below the heading of a slide is drawn smaller where it would be too high or too wide.
function fit(slide) {
  const body = slide.querySelector(".body");
  if (!body || body.style.zoom) return;
  const room = PAGE.height - body.offsetTop - 30;
  const formulas = [...body.querySelectorAll("mjx-container[display=true]")];
  const wide = Math.max(1, ...formulas.map((one) => one.scrollWidth / one.clientWidth));
  body.style.zoom = Math.min(1, room / body.scrollHeight, 1 / wide);
}

Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
Reveal.on("pdf-ready", () => Reveal.getSlides().forEach(fit));

addEventListener("DOMContentLoaded", async () => {      // after the sliders have read the address
  const asked = location.hash;
  await Reveal.initialize({
    ...PAGE, margin: 0.02, center: false, hash: true, slideNumber: "c/t", transition: "none",
    pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, scrollActivationWidth: null,
    keyboardCondition: (event) => !event.target.closest?.(".slider-control"),    // arrow keys move the slider in use
  });
  const figure = asked.startsWith("#fig-") && document.getElementById(asked.slice(1).split("?")[0]);
  if (figure) Reveal.slide(Reveal.getIndices(figure.closest("section")).h);
  if (!Reveal.isPrintView()) fit(Reveal.getCurrentSlide());
  document.documentElement.dataset.ready = "";
});
