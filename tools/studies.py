"""Sphinx extension: the directive `studies`, a table of all studies: cost, machine, and how well each was reproduced."""

import re
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from figures.experiments import runner, states, verification

HEADINGS = ("study", "runs", "hours", "converged", "code", "machine", "run again")
NOT_RECORDED = "not recorded"


class Studies(SphinxDirective):
    """One sentence on all studies, and one line for each."""

    def run(self):
        found = [states.state_of(runner.load(study_id)) for study_id in runner.studies()]
        for state in found:
            self.env.note_dependency(str(state.study.file))
        self.env.note_dependency(str(verification.FILE))
        return [*self.parse_text_to_nodes(total(found)), nodes.raw("", table(found), format="html")]


def total(found):
    """What all studies cost together, in a few sentences."""
    rows = sum(len(state.rows) for state in found)
    dated = sum(len(state.rows) - state.undated for state in found)
    stale = sum(state.stale for state in found)
    hours, left = sum(state.hours for state in found), sum(state.hours_left for state in found)
    return (f"**{len(found)} studies hold {rows} rows, which took {hours:.0f} hours of one processor; "
            f"{sum(len(state.missing) for state in found)} runs are missing, about {left:.0f} hours.** {dated} rows name "
            f"the code that computed them, and {stale} of these were computed by code other than the present. The others "
            f"are older: they name the first commit that contains them.")


def table(found):
    """The table, in HTML."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
    again = verification.kept()
    lines = "".join(line(state, again.get(state.study.id)) for state in found)
    return f'<table class="table studies sortable"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def line(state, again):
    """The row of one study, in HTML."""
    runs = f"{len(state.rows)} of {state.total}" if state.missing else str(state.total)
    left = f", {state.hours_left:.1f} left" if state.missing else ""
    cells = (runs, f"{state.hours:.1f}{left}", converged(state.rows), code(state), machine(state.rows), came_out(again))
    title = re.sub("`([^`]*)`", r"<code>\1</code>", escape(re.sub(r"\s+", " ", state.study.title)))
    name = f'<th scope="row"><code>{state.study.id}</code><br><small style="font-weight: 400">{title}</small></th>'
    return f"<tr>{name}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def converged(rows):
    """The share of the rows whose search converged; a dash where rows do not say."""
    known = [row["converged"] for row in rows if row.get("converged") in ("True", "False")]
    return f"{100 * known.count('True') / len(known):.0f} %" if known else "–"


def code(state):
    """How many versions of the code computed the rows."""
    codes, commits = ({row[name] for row in state.rows} - {""} for name in ("code", "commit"))
    if not state.rows:
        return "–"
    if codes:
        return f"{len(codes)} in {len(commits)} commits" if len(codes) > 1 or state.undated else f"one, {codes.pop()}"
    return f"{NOT_RECORDED}; first held by {len(commits)} commit{'s' * (len(commits) > 1)}"


def machine(rows):
    """Where the rows were computed."""
    return " | ".join(sorted({row["machine"] for row in rows} - {""})) or (NOT_RECORDED if rows else "–")


def came_out(again):
    """What `python -m figures verify` found, in words."""
    if not again:
        return "–"
    far = "" if again["equal"] == again["rows"] else f", largest relative difference {again['largest']:.0e} ({again['column']})"
    return f"{again['equal']} of {again['rows']} equal to the last digit{far}; at {again['commit']}"


def setup(app):
    app.add_directive("studies", Studies)
    return {"version": "1", "parallel_read_safe": True}
