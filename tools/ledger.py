"""Sphinx extension: the directive `claims`, which shows the ledger of figures/claims.toml, and `reproduction`, its summary.

The claims are ordinary page content, so that they can be read, searched and linked to without JavaScript; a few lines of
it hide those that the reader filters away, keep the choice in the address, and unfold the claim that an address names.
"""

import functools
from collections import Counter
from html import escape
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.util.docutils import SphinxDirective

from figures import FOLDER
from figures.experiments import claims, rules, runner, tables
from figures.experiments.verdicts import rule as rule_in_words

STYLE = """
<style>
.ledger-chart { margin: 1rem 0; }
.ledger-chart p { margin: 0.5rem 0 0.15rem; }
.ledger-bar { display: flex; height: 1.5rem; gap: 2px; }
.ledger-bar a { color: #fff; text-align: center; font-size: 0.85rem; line-height: 1.5rem; min-width: 24px; overflow: hidden;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.ledger-bar a:hover, .ledger-bar a:visited { color: #fff; }
.ledger-bar .reproduced { background: #00705d; }
.ledger-bar .partly { background: repeating-linear-gradient(45deg, #8a5a00 0 6px, #7a4f00 6px 12px); }
.ledger-bar .inconclusive { background: #5a5f66; }
.ledger-bar .not-reproduced { background: repeating-linear-gradient(-45deg, #b0330a 0 6px, #98290a 6px 12px); }
.ledger-bar .not-testable-here { background: #6b4a86; }
.ledger-filters { display: flex; flex-wrap: wrap; gap: 0.5rem 1.25rem; align-items: center; margin: 1rem 0; }
.ledger-filters[hidden], details.claim[hidden], section[hidden] { display: none; }
.ledger-filters label, .ledger-filters select { max-width: 100%; }
.ledger-filters select { min-height: 2.75rem; }
details.claim { margin: 0.25rem 0; padding: 0.15rem 0.6rem; border-left: 4px solid var(--verdict, var(--pst-color-border)); }
details.claim > summary { font-size: 0.9rem; line-height: 1.4; padding: 0.2rem 0; }
details.claim > summary, details.paper > summary { cursor: pointer; }
details.claim li, details.claim code { overflow-wrap: anywhere; white-space: normal; }
details.claim li p { margin-bottom: 0.1rem; }
details.claim.reproduced { --verdict: #00806a; }
details.claim.partly { --verdict: #b87800; }
details.claim.not-reproduced { --verdict: #d1400f; }
.verdict { display: inline-block; padding: 0 0.5rem; border: 1px solid currentcolor; border-radius: 1rem; font-size: 0.85em; }
details.claim a, .ledger-chart p a, .ledger-list a { text-decoration: underline; color: var(--ledger-link); }
html:is([data-theme="light"], :not([data-theme])) { --ledger-link: #005f73; }
html[data-theme="dark"] { --ledger-link: #7cd0e0; }
</style>
"""
FORM = """
<form class="ledger-filters" hidden>
<label>Paper <select name="paper"><option value="">all</option>{papers}</select></label>
<label>Verdict <select name="verdict"><option value="">all</option>{verdicts}</select></label>
<label>Rule <select name="rule"><option value="">all</option>{rules}</select></label>
<output role="status"></output>
</form>
"""
SCRIPT = """
<script>
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.ledger-filters"), names = ["paper", "verdict", "rule"];
  const claims = [...document.querySelectorAll("details.claim")], papers = [...document.querySelectorAll("details.paper")];
  function show() {
    const wanted = names.map(name => form.elements[name].value).filter(Boolean);
    for (const claim of claims) claim.hidden = !wanted.every(name => claim.classList.contains(name));
    for (const paper of papers) {
      paper.closest("section").hidden = !paper.querySelector("details.claim:not([hidden])");
      if (wanted.length) paper.open = true;
    }
    form.querySelector("output").value = claims.filter(claim => !claim.hidden).length + " of " + claims.length + " claims";
  }
  function follow() {
    if (location.hash.startsWith("#?")) {
      const asked = new URLSearchParams(location.hash.slice(2));
      for (const name of names) form.elements[name].value = asked.get(name) || "";
      return show();
    }
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !target.matches("details.claim")) return;
    for (const name of names) form.elements[name].value = "";
    show();
    target.closest("details.paper").open = target.open = true;
    target.scrollIntoView();
  }
  form.addEventListener("change", () => {
    const chosen = names.filter(name => form.elements[name].value).map(name => [name, form.elements[name].value]);
    history.replaceState(null, "", "#?" + new URLSearchParams(chosen));
    show();
  });
  form.addEventListener("submit", event => event.preventDefault());
  window.addEventListener("hashchange", follow);
  form.hidden = false;
  show();
  follow();
});
</script>
"""


class Ledger(SphinxDirective):
    """All claims, folded, with filters; or with the option `headline` the counts and the chart above them."""

    option_spec: ClassVar = {"headline": directives.flag}

    def run(self):
        _note_dependencies(self.env)
        ledger = claims.ledger()
        if "headline" in self.options:
            return [*self.parse_text_to_nodes(headline(ledger)), html(STYLE + chart(ledger))]
        found = [html(form(ledger))]
        for paper in papers(ledger):
            found.append(self._of_paper(paper, [claim for claim in ledger if claim.paper == paper]))
        gone = section(self, "ledger-withdrawn", "Withdrawn")
        gone += [*self.parse_text_to_nodes(withdrawn()), html(SCRIPT)]
        return [*found, gone]

    def _of_paper(self, paper, ledger):
        counts = ", ".join(count_in_words(ledger))
        found = section(self, f"ledger-{paper}", spoken(paper))
        found += html(f'<details class="paper"><summary>{counts}</summary>')
        for claim in ledger:
            found += [html(summary(claim)), *self.parse_text_to_nodes(details(claim)), html("</details>")]
        found += html("</details>")
        return found


class Reproduction(SphinxDirective):
    """What was reproduced and what was not, for each paper: counts, and the claims with links; those that were not unfolded."""

    def run(self):
        _note_dependencies(self.env)
        ledger = claims.ledger()
        found = [*self.parse_text_to_nodes(headline(ledger)), html(STYLE + chart(ledger, page="claims.html"))]
        for paper in papers(ledger):
            own = [claim for claim in ledger if claim.paper == paper]
            part = section(self, f"reproduction-{paper}", spoken(paper))
            part += self.parse_text_to_nodes(f"{{cite:t}}`{paper}`: {', '.join(count_in_words(own))}.")
            part += html("".join(with_verdict(own, verdict) for verdict in claims.VERDICTS))
            found.append(part)
        return found


def with_verdict(ledger, verdict):
    """The tested claims with a verdict, in HTML, each with a link; unfolded if they were not reproduced; "" if there are none."""
    lines = [f'<li>{escape(claim.statement)} Ours: {escape(claim.found)}. '
             f'<a href="claims.html#{claim.anchor}">{escape(claim.id)}</a></li>'
             for claim in ledger if claim.verdict == verdict and claim.measure]
    unfolded = " open" if verdict == "not reproduced" else ""
    return (f'<details{unfolded}><summary>{verdict.capitalize()}: {len(lines)}</summary>'
            f'<ul class="ledger-list">{"".join(lines)}</ul></details>') if lines else ""


def section(directive, name, title):
    """A section of the page in which the directive stands, for the contents at the side."""
    node = nodes.section("", nodes.title(title, title), ids=[name], names=[name])
    directive.set_source_info(node)
    return node


def _note_dependencies(env):
    for file in (claims.FILE, rules.FILE):
        env.note_dependency(str(file))


def html(text):
    """Text for the page as it is."""
    return nodes.raw("", text, format="html")


def papers(ledger):
    """Keys of the papers, in the order of the ledger."""
    return list(dict.fromkeys(claim.paper for claim in ledger))


@functools.cache
def spoken(paper):
    """The name of a paper in running text, such as "Bui et al. (2017)", by its key."""
    entry = parse_file(FOLDER.parent / "references.bib").entries[paper]
    first, *others = [str(Text.from_latex(" ".join(author.last_names))) for author in entry.persons["author"]]
    return f"{first}{'' if not others else f' and {others[0]}' if len(others) == 1 else ' et al.'} ({entry.fields['year']})"


def headline(ledger):
    """How many claims were tested by which kind of rule, and what came out; what is fixed beforehand stands first."""
    kinds = {kind: [claim for claim in ledger if rule_in_words(claim) == kind]
             for kind in ("before the runs", "with hindsight", "needs no runs", "none")}
    said = {kind: f"{len(found)} ({', '.join(count_in_words(found))})" for kind, found in kinds.items()}
    tested = len(ledger) - len(kinds["none"])
    return (f"**Of {tested} claims that were tested, {said['before the runs']} were judged by a rule committed before the first "
            f"rows of their study, and {said['with hindsight']} with hindsight: the rule, or the way to estimate the number, "
            "was written or changed when there were rows, or the number was known.** Many intervals, which can make a verdict "
            f"*inconclusive*, came late, when the numbers were known. The other {said['needs no runs']} need "
            f"no rows: they are identities and counts, which the tests compute directly. {len(kinds['none'])} claims could not "
            "be tested here, and say why.")


def count_in_words(ledger):
    """A list such as ["3 reproduced", "1 partly"]."""
    counts = Counter(claim.verdict for claim in ledger)
    return [f"{counts[verdict]} {verdict}" for verdict in claims.VERDICTS if counts[verdict]]


def chart(ledger, page=""):
    """Bars of verdicts for each paper and each kind of rule, in HTML; every part is a link to its claims."""
    groups = [("paper", paper, spoken(paper), [claim for claim in ledger if claim.paper == paper]) for paper in papers(ledger)]
    groups += [("rule", slug(kind), f"rule: {kind}", [claim for claim in ledger if rule_in_words(claim) == kind])
               for kind in ("before the runs", "with hindsight", "needs no runs")]
    lines = []
    for name, value, title, own in groups:
        counts = Counter(claim.verdict for claim in own)
        parts = "".join(
            f'<a class="{slug(verdict)}" style="flex: {count}" href="{page}#?{name}={value}&amp;verdict={slug(verdict)}" '
            f'aria-label="{escape(title)}: {count} {verdict}">{count}</a>'
            for verdict in claims.VERDICTS if (count := counts[verdict]))
        lines.append(f'<p><strong>{escape(title)}</strong>: {", ".join(count_in_words(own))}</p>'
                     f'<div class="ledger-bar">{parts}</div>')
    return f'<div class="ledger-chart">{"".join(lines)}</div>'


def form(ledger):
    """The filters, in HTML."""
    def options(names, said=str):
        return "".join(f'<option value="{slug(name)}">{escape(said(name))}</option>' for name in names)

    present = {claim.verdict for claim in ledger}
    return FORM.format(papers=options(papers(ledger), spoken), verdicts=options(v for v in claims.VERDICTS if v in present),
                       rules=options(dict.fromkeys(map(rule_in_words, ledger))))


def summary(claim):
    """The beginning of one claim, in HTML: what is claimed, and the verdict."""
    kinds = " ".join(["claim", *map(slug, (claim.paper, claim.verdict, rule_in_words(claim)))])
    return (f'<details class="{kinds}" id="{claim.anchor}"><summary>{escape(claim.statement)} '
            f'<span class="verdict">{claim.verdict}</span></summary>')


def details(claim):
    """The rest of one claim in Markdown: what we found, how it was judged, and where to look."""
    lines = [f"* claimed: {claim.claimed} ({{cite:t}}`{claim.paper}`, {claim.source})"]
    if claim.measure:
        lines += [f"* found: **{claim.found}**", f"* measured: {measurement(claim)}", f"* counts as {tolerance(claim)}",
                  *dates(claim)]
    else:
        lines.append(f"* {claim.found}")
    if claim.why:
        lines.append(f"* why: {claim.why}")
    return "\n".join([*lines, f"* see {links(claim)}", f"* name: `{claim.id}`"])


def dates(claim):
    """When the rule was written, when the first rows came, and what has changed since, as lines of Markdown."""
    entry = rules_by_claim().get(claim.id, {"changes": []})      # a new claim has none until it is committed
    rows = f"; first rows: {entry['rows'][:10]}; study: `{claim.data}`" if "rows" in entry else ""
    lines = [f"* rule written: {entry.get('written', 'not committed yet')[:10]}{rows}; {rule_in_words(claim)}"]
    return lines + [f"* changed {escape(change, quote=False)}" for change in entry["changes"]]


@functools.cache
def rules_by_claim():
    """claim -> what is recorded of its rule; the file is read once, and not for every claim."""
    return {entry["claim"]: entry for entry in rules.read()["rule"]}


def withdrawn():
    """The claims that were tested once and no longer are, in Markdown."""
    lines = [f"* `{entry['claim']}`: {escape(entry['change'], quote=False)}" for entry in rules.read()["withdrawn"]]
    return "\n".join(["These claims once had a rule, and all but `bui-small-step-free` a verdict. They no longer count. "
                      "`csa-fitc-bui` and `vil-fig7` stand above, with the reason why they cannot be tested; no paper makes "
                      "the other three as they were put. Each line gives the last rule, the last verdict and the subject of "
                      "the commit that took the claim out.", "", *lines])


def measurement(claim):
    """The first sentence of the function that measures the claim, with its arguments."""
    sentence = " ".join(claim.function.__doc__.split("\n\n")[0].split()).rstrip(".")
    arguments = ", ".join(f"{name} = {value}" for name, value in claim.arguments.items())
    return sentence + (f" ({arguments})" if arguments else "")


def tolerance(claim):
    """The ranges of our number that count as reproduced and as partly reproduced, in words."""
    parts = [f"reproduced {in_words(claim.reproduced)}"]
    if claim.partly and list(claim.partly) != list(claim.reproduced):
        parts.append(f"as partly {in_words(claim.partly)}")
    return ", ".join(parts) + (", with all of its interval" if claim.interval else "")


def in_words(limits):
    """A range [low, high] in words."""
    low, high = limits
    if low == high:
        return f"at {low:g}"
    if low == -float("inf"):
        return f"up to {high:g}"
    return f"from {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"


def links(claim):
    """Links to the section or figure, to the code that measures the claim, and to its data."""
    parts = [f"{{doc}}`{claim.page}`" + (f", {{numref}}`{claim.figure}`" if claim.figure else "")] if claim.page else []
    if claim.measure:
        module, _, name = claim.measure.rpartition(".")
        place = module.replace(".", "/")
        parts.append(f"code: `{name}` in {{download}}`{place}.py </figures/experiments/{place}.py>`")
    if claim.data:
        parts.append(f"data: {data(claim.data)}")
    return "; ".join(parts)


@functools.cache
def data(study_id):
    """A link to the results of a study, and how many of its runs there are if some are missing."""
    study = runner.load(study_id)
    missing = len(tables.missing_runs(study))
    file = f"{{download}}`{study_id}.csv </figures/results/{study_id}.csv>`" if study.file.exists() else study_id
    return file + (f", {len(study.runs()) - missing} of {len(study.runs())} runs so far" if missing else "")


def slug(name):
    """A name as a class of the page: "not reproduced" -> "not-reproduced"."""
    return name.replace(" ", "-")


def setup(app):
    app.add_directive("claims", Ledger)
    app.add_directive("reproduction", Reproduction)
    return {"version": "1", "parallel_read_safe": True}
