// Answers in a page without a browser: jsdom loads the page named on the command line and runs its scripts. Reads one JSON
// line for each answer, [name of the form, texts | number of the option | null for no answer], presses the button, and
// writes one: {"said": what the page says, "problems": [what went wrong in the page so far]}.
"use strict";
const path = require("path");
const readline = require("readline");
const { JSDOM, VirtualConsole } = require(path.resolve("node_modules/jsdom"));

const problems = [];
const virtualConsole = new VirtualConsole();
for (const kind of ["error", "warn", "info", "log", "debug"]) {
  virtualConsole.on(kind, (...words) => problems.push(words.join(" ")));
}
virtualConsole.on("jsdomError", (error) => problems.push(String(error.detail ?? error.message)));

function answer(document, name, given) {
  const form = document.querySelector(`form[data-answer="${name}"]`);
  const fields = [...form.querySelectorAll("input")];
  if (typeof given === "number") fields[given].click();
  else (given ?? []).forEach((text, i) => { fields[i].value = text; });
  form.querySelector("button").click();
  return form.querySelector("output").textContent;
}

async function main() {
  const dom = await JSDOM.fromFile(process.argv[2], { runScripts: "dangerously", resources: "usable", virtualConsole });
  const { document } = dom.window;
  if (document.readyState !== "complete") await new Promise((done) => { dom.window.addEventListener("load", done); });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const said = answer(document, ...JSON.parse(line));
    process.stdout.write(`${JSON.stringify({ said, problems })}\n`);
  }
}

main();
