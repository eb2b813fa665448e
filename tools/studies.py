"""Sphinx extension: the directive `studies`, a table of all studies: cost, machine, and how well each was reproduced."""

import re
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from figures.experiments import runner, states, verification

HEADINGS = ("study", "runs", "hours", "converged", "computed by", "run again")


class Studies(SphinxDirective):
    """One sentence on all studies, and one line for each."""

    def run(self):
        found = [states.state_of(runner.load(study_id)) for study_id in runner.studies()]
        for state in found:
            self.env.note_dependency(str(state.study.file))
        self.env.note_dependency(str(verification.FILE))
        kept = verification.kept()
        return [*self.parse_text_to_nodes(total(found, kept)), nodes.raw("", table(found, kept), format="html")]


def total(found, again):
    """What all studies cost together, and how many rows were reproduced, in a few sentences."""
    rows = sum(len(state.rows) for state in found)
    dated = sum(len(state.rows) - state.undated for state in found)
    stale = sum(state.stale for state in found)
    hours, hours_left = sum(state.hours for state in found), sum(state.hours_left for state in found)
    counted = ("compared", "equal", "rated", "rates_equal")
    repeated, equal, rates, rates_equal = (sum(entry[name] for entry in again.values()) for name in counted)
    missing = sum(len(state.missing) for state in found)
    left = f"{missing} runs are missing, about {hours_left:.0f} hours" if missing else "no run is missing"
    return (f"**{len(found)} studies hold {rows} rows, which took {hours:.0f} hours with one thread; "
            f"{left}.** {dated} rows name the code that computed them. Of these, {stale} were computed by other code or on "
            "other data than the present. A change of the code need not alter a number: the last column says how far a "
            "sample of the rows was from what later code gave. The other rows are older: they name the first commit that "
            f"contains them. {repeated} rows were computed once more and compared: {equal} came out equal to the last digit; "
            f"of {rates} that have error rates, {rates_equal} have the same ones.")


def table(found, again):
    """The table, in HTML."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
    lines = "".join(line(state, again.get(state.study.id)) for state in found)
    return f'<table class="table studies sortable"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def line(state, again):
    """The row of one study, in HTML."""
    runs = f"{len(state.rows)} of {state.total}" if state.missing else str(state.total) if state.readable else "?"
    left = f", {state.hours_left:.1f} left" if state.missing else ""
    title = re.sub("`([^`]*)`", r"<code>\1</code>", escape(re.sub(r"\s+", " ", state.study.title)))
    numbers = "".join(f"<td>{escape(cell)}</td>" for cell in (runs, f"{state.hours:.1f}{left}", converged(state.rows)))
    origin = f"<td>{escape(code(state))}<br><small>{escape(machine(state.rows))}</small></td>"
    return (f'<tr><th scope="row"><code>{state.study.id}</code><br><small>{title}</small></th>{numbers}{origin}'
            f"<td>{escape(came_out(again))}</td></tr>")


def converged(rows):
    """The share of the rows whose search converged; a dash where rows do not say."""
    known = [row["converged"] for row in rows if row.get("converged") in ("True", "False")]
    return f"{100 * known.count('True') / len(known):.0f} %" if known else "–"


def code(state):
    """Which code computed the rows, in words."""
    codes = {row["code"] for row in state.rows} - {""}
    if not codes:
        return "not recorded" if state.rows else "–"
    versions = "an earlier version" if len(codes) == 1 else f"{len(codes)} versions"
    said = f"{versions} of the code" if state.stale else "the present code"
    return said + (f"; not recorded for {state.undated} rows" if state.undated else "")


def machine(rows):
    """Where the rows were computed, in short: the processors, and those for which BLAS has its code."""
    found = set()
    for described in {row["machine"] for row in rows} - {""}:
        processor, *libraries = re.sub(r" \(.*?\)", "", described).split("; ")
        found.add(f"{processor}, BLAS for {' and '.join(sorted({library.split()[-1] for library in libraries}))}")
    return " | ".join(sorted(found))


def came_out(again):
    """What `python -m figures verify` found, in words."""
    if not again:
        return "–"
    if not again["compared"]:
        return "only times, which are not compared"
    said = f"{again['equal']} of {again['compared']} equal"
    if again["equal"] == again["compared"]:
        return said
    rates = f", the same error rates in {again['rates_equal']} of {again['rated']}" if again["rated"] else ""
    return f"{said}{rates}; largest difference {again['largest']:.0e} ({again['column']})"


def setup(app):
    app.add_directive("studies", Studies)
    return {"version": "1", "parallel_read_safe": True}
