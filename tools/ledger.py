"""Sphinx extension: the directive `claims`, which shows the ledger of figures/claims.toml with filters.

The claims are ordinary page content, so that they can be read, searched and linked to without JavaScript; a few lines of
it hide those that the reader filters away.
"""

from collections import Counter
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from figures.experiments import claims, runner, tables

FILTERS = """
<form class="ledger-filters" hidden>
<label>Paper <select name="paper"><option value="">all</option>{papers}</select></label>
<label>Verdict <select name="verdict"><option value="">all</option>{verdicts}</select></label>
<output role="status"></output>
</form>
<script>
document.addEventListener("DOMContentLoaded", () => {{
  const form = document.querySelector("form.ledger-filters");
  const claims = [...document.querySelectorAll("div.claim")];
  function show() {{
    const wanted = ["paper", "verdict"].map(name => form.elements[name].value).filter(Boolean);
    for (const claim of claims) claim.hidden = !wanted.every(name => claim.classList.contains(name));
    form.querySelector("output").value = claims.filter(claim => !claim.hidden).length + " of " + claims.length + " claims";
  }}
  form.addEventListener("change", show);
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = false;
  show();
}});
</script>
"""


class Ledger(SphinxDirective):
    """All claims, with a summary and filters above them."""

    def run(self):
        self.env.note_dependency(str(claims.FILE))
        ledger = claims.ledger()
        text = "\n".join([summary(ledger), "", *(entry(claim) for claim in ledger)])
        shown = self.parse_text_to_nodes(text)
        return [shown[0], nodes.raw("", filters(ledger), format="html"), *shown[1:]]


def summary(ledger):
    """How many claims there are of each verdict, in one sentence."""
    counts = Counter(claim.verdict for claim in ledger)
    parts = [f"{counts[verdict]} {verdict}" for verdict in claims.VERDICTS if counts[verdict]]
    return f"**{len(ledger)} claims:** {', '.join(parts)}."


def filters(ledger):
    """The form above the claims, in HTML."""
    def options(names):
        return "".join(f'<option value="{slug(name)}">{escape(name)}</option>' for name in names)

    return FILTERS.format(papers=options(dict.fromkeys(claim.paper for claim in ledger)), verdicts=options(claims.VERDICTS))


def entry(claim):
    """One claim in Markdown: what is claimed, what we found, the verdict, and where to look."""
    lines = [
        f"````{{container}} claim {slug(claim.paper)} {slug(claim.verdict)}",
        f":name: claim-{claim.id}",
        "",
        f'{claim.statement} <span class="verdict">{claim.verdict}</span>',
        "",
        f"* claimed: {claim.claimed} ({{cite:t}}`{claim.paper}`, {claim.source})",
    ]
    if claim.measure:
        lines += [f"* found: **{claim.found}**", f"* measured: {measurement(claim)}", f"* counts as {tolerance(claim)}"]
    else:
        lines.append(f"* {claim.found}")
    if claim.why:
        lines.append(f"* why: {claim.why}")
    if where := links(claim):
        lines.append(f"* see {where}")
    return "\n".join([*lines, "````", ""])


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
    if claim.hindsight:
        parts.append("a range chosen when first results had been seen")
    return ", ".join(parts)


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
    parts = []
    if claim.page:
        parts.append(f"{{doc}}`{claim.page}`" + (f", {{numref}}`{claim.figure}`" if claim.figure else ""))
    if claim.measure:
        module, _, name = claim.measure.rpartition(".")
        place = module.replace(".", "/")
        parts.append(f"code: `{name}` in {{download}}`{place}.py </figures/experiments/{place}.py>`")
    if claim.data:
        study = runner.load(claim.data)
        missing = len(tables.missing_runs(study))
        part = f", {len(study.runs()) - missing} of {len(study.runs())} runs so far" if missing else ""
        file = f"{{download}}`{claim.data}.csv </figures/results/{claim.data}.csv>`" if study.file.exists() else claim.data
        parts.append(f"data: {file}{part}")
    return "; ".join(parts)


def slug(name):
    """A name as a class of the page: "not reproduced" -> "not-reproduced"."""
    return name.replace(" ", "-")


def setup(app):
    app.add_directive("claims", Ledger)
    return {"version": "1", "parallel_read_safe": True}
