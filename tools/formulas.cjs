// Sets formulas with MathJax: reads [[TeX, displayed], ...] as JSON, writes {"html": [...], "css": "..."}.
// Run from the root of the repository, where node_modules/ is.
"use strict";
const path = require("path");
const mathjax = require(path.resolve("node_modules/mathjax/es5/node-main.js"));

mathjax.init({
  loader: { load: ["adaptors/liteDOM", "input/tex", "output/chtml", "a11y/assistive-mml"] },
  tex: { packages: { "[-]": ["noundefined"] } },     // an unknown command is an error
  chtml: { fontURL: "mathjax/output/chtml/fonts/woff-v2" },
}).then(async (MathJax) => {
  const html = [];
  for (const [tex, display] of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
    const node = await MathJax.tex2chtmlPromise(tex, { display });
    html.push(MathJax.startup.adaptor.outerHTML(node));
  }
  const css = MathJax.startup.adaptor.textContent(MathJax.chtmlStylesheet());
  process.stdout.write(JSON.stringify({ html, css }));
}).catch((problem) => {
  console.error(problem);
  process.exit(1);
});
