// Sliders over pictures: one script for all controls of a page, without a library.
//
// A box holds controls, and two images of the start frame, for the light and for the dark theme. The frames lie in the
// folder data-folder; 3-1.svg is the one at the fourth value of the first control and the second value of the second, and
// 3-1-dark.svg the same for the dark theme. Addresses such as #fig-humps?alpha=0.75 open the page at a value.
"use strict";
const boxes = [];

// frames are fetched when a reader comes near
const near = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((entry) => entry.isIntersecting)) {
    near.unobserve(entry.target);
    boxes.find((box) => box.element === entry.target).fetch_neighbours();
  }
}, { rootMargin: "300px" });

// The page calls this behind each box: a slider moves while the rest of the page is still on its way.
function start_slider(element) {
  boxes.push(bring_to_life(element));
  near.observe(element);
}

// A browser that comes back to a page may have put the controls where they were.
addEventListener("pageshow", () => boxes.forEach((box) => box.catch_up()));

addEventListener("DOMContentLoaded", () => {
  const follow_address = () => {
    const [, name, query] = location.hash.match(/^#(fig-[^?]+)\?(.*)$/) ?? [];
    const figure = name && document.getElementById(name);
    const box = figure && boxes.find((box) => figure.contains(box.element));
    if (!box) return;
    for (const [parameter, value] of new URLSearchParams(query)) box.choose(parameter, value);
    box.show();
    figure.scrollIntoView();
  };
  addEventListener("hashchange", follow_address);
  follow_address();

  // the theme has changed: get the neighbours in its colours too
  new MutationObserver(() => boxes.forEach((box) => box.started && box.fetch_neighbours()))
    .observe(document.documentElement, { attributeFilter: ["data-theme"] });

  // paper shows pictures that the screen has not asked for
  addEventListener("beforeprint", () => {
    for (const image of document.querySelectorAll("img[loading=lazy]")) image.loading = "eager";
  });
});

function bring_to_life(element) {
  const { kind, alts } = JSON.parse(element.dataset.frames);
  const images = [...element.querySelectorAll(".slider-picture img")];
  const controls = [...element.querySelectorAll(".slider-control")].map(control);
  const cache = new Map();      // address -> promise of a decoded image
  let wanted = "";

  const dark = () => document.documentElement.dataset.theme === "dark";
  const address = (stem, in_dark) => `${element.dataset.folder}/${stem}${in_dark ? "-dark" : ""}.${kind}`;
  const stem_of = (places) => places.join("-");
  const places = () => controls.map((control) => control.place);

  function ready(stem) {
    const url = address(stem, dark());
    if (!cache.has(url)) {
      const image = new Image();
      image.src = url;
      cache.set(url, image.decode().catch(() => cache.delete(url)));
    }
    return cache.get(url);
  }

  // Show the frame of the controls' values once it is there; of several in a hurry, only the last.
  async function show() {
    const stem = stem_of(places());
    wanted = stem;
    controls.forEach((control) => control.speak());
    await ready(stem);
    if (wanted !== stem) return;
    images.forEach((image, i) => {
      image.src = address(stem, i === 1);
      image.alt = alts[stem];
    });
    element.dataset.shown = stem;
    box.fetch_neighbours();
  }

  const box = {
    element,
    started: false,
    show,
    catch_up() {
      if (stem_of(places()) !== element.dataset.shown) show();
    },
    choose(parameter, text) {
      controls.find((control) => control.name === parameter)?.choose(text);
    },
    // the frames one step away
    fetch_neighbours() {
      box.started = true;
      controls.forEach((control, i) => {
        for (const step of [1, -1]) {
          const next = places().map((place, j) => (j === i ? place + step : place));
          if (stem_of(next) in alts) ready(stem_of(next));
        }
      });
    },
  };

  // All frames of the controls' lines, nearest first, as soon as the reader reaches for a control.
  let reached = false;
  const reach = () => {
    if (reached || navigator.connection?.saveData) return;
    reached = true;
    const distance = (stem) => stem.split("-").reduce((sum, place, i) => sum + Math.abs(place - places()[i]), 0);
    Object.keys(alts).sort((a, b) => distance(a) - distance(b)).slice(0, 60).forEach(ready);
  };
  for (const event of ["pointerdown", "focusin"]) element.addEventListener(event, reach);
  element.addEventListener("input", show);
  element.addEventListener("change", () => {
    const query = new URLSearchParams(controls.map((control) => [control.name, control.text]));
    history.replaceState(null, "", `#${element.closest("figure").id}?${query}`);
  });
  element.dataset.shown = images[0].getAttribute("src").match(/([\d-]+?)(-dark)?\.\w+$/)[1];
  return box;
}

// A slider, a list or a group of radio buttons: the place of its value, and how that is written and spoken.
function control(element) {
  const range = element.querySelector("input[type=range]");
  const list = element.querySelector("select");
  const buttons = [...element.querySelectorAll("input[type=radio]")];
  const texts = range ? JSON.parse(range.dataset.texts)
    : list ? [...list.options].map((option) => option.text) : buttons.map((button) => button.parentElement.textContent.trim());

  return {
    name: element.dataset.name,
    get place() {
      return range || list ? Number((range ?? list).value) : buttons.findIndex((button) => button.checked);
    },
    get text() {
      return texts[this.place];
    },
    speak() {
      if (!range) return;
      element.querySelector("output").textContent = this.text;
      range.setAttribute("aria-valuetext", JSON.parse(range.dataset.words)[this.place]);
    },
    // the value that is written so, or of numbers the nearest
    choose(text) {
      let place = texts.indexOf(text);
      const number = (one) => parseFloat(one.replaceAll(" ", "").replace("−", "-"));
      if (place < 0 && range && !Number.isNaN(number(text))) {
        const away = texts.map((other) => Math.abs(number(other) - number(text)));
        place = away.indexOf(Math.min(...away.filter(Number.isFinite)));
      }
      if (place < 0) return;
      if (buttons.length) buttons[place].checked = true;
      else (range ?? list).value = place;
    },
  };
}
