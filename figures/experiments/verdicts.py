"""The verdicts that a chapter shows: lines of the ledger as a table, with nothing measured anew."""

import difflib
from dataclasses import dataclass
from html import escape

from figures.drawing.table import SORTABLE_FROM, true_minus

LEDGER_PAGE = "claims.html"
HEADINGS = ("claim", "paper", "ours", "verdict", "rule")


@dataclass(frozen=True)
class Verdicts:
    """Some claims of the ledger, shown as a table in a notebook and as text in a terminal."""

    claims: tuple

    def __repr__(self):
        return "\n".join(f"{claim.id}: {claim.verdict}\n    {claim.statement}\n    paper: {true_minus(claim.claimed)}\n"
                         f"    ours: {true_minus(claim.found)}\n    rule: {rule(claim)}" for claim in self.claims)

    def _repr_html_(self):
        head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
        kind = "verdicts sortable" if len(self.claims) >= SORTABLE_FROM else "verdicts"
        return "\n".join([f'<table class="{kind}">', f"<thead><tr>{head}</tr></thead>", "<tbody>",
                          *map(_line, self.claims), "</tbody>", "</table>"])


def rule(claim):
    """When the rule that decides the verdict was fixed, in words."""
    if not claim.measure:
        return "none"
    if claim.hindsight:
        return "with hindsight"
    return "before the runs" if claim.data else "needs no runs"


def chosen(ledger, names):
    """The claims of the ledger with these ids, each once; a name that is no id stands for all that begin with it and a hyphen.

    Raises
    ------
    ValueError
        If no name is given, or one fits no claim; the message gives names that are close to it.
    """
    if not names:
        raise ValueError("name the claims that are wanted, such as 'bui-fig4-smse-half-vfe', or 'bui-fig4' for all of it")
    found = []
    for name in names:
        fitting = ([claim for claim in ledger if claim.id == name]
                   or [claim for claim in ledger if claim.id.startswith(f"{name}-")])
        if not fitting:
            raise ValueError(f"no claim is called {name!r}, and none begins with {name!r} and a hyphen; {_near(ledger, name)}")
        found += [claim for claim in fitting if claim not in found]
    return Verdicts(tuple(found))


def _near(ledger, name):
    """Names that the reader may have meant: ids, and what ids begin with."""
    known = {"-".join(parts[:length]) for claim in ledger for parts in [claim.id.split("-")]
             for length in range(2, len(parts) + 1)} | {claim.id for claim in ledger}
    close = difflib.get_close_matches(name, sorted(known), n=4, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else "`python -m figures claims` lists all"


def _line(claim):
    """One row of the table."""
    source, page = escape(claim.source), f"{LEDGER_PAGE}#{claim.anchor}"
    link = f'<a href="{page}" aria-label="{source}: {escape(claim.id)} in the ledger">{source}</a>'
    kind = claim.verdict.replace(" ", "-")
    claimed, found = (escape(true_minus(text)) for text in (claim.claimed, claim.found))
    cells = (f"<td>{escape(claim.statement)} ({link})</td>", f"<td>{claimed}</td>", f"<td>{found}</td>",
             f'<td class="{kind}"><span class="verdict">{escape(claim.verdict)}</span></td>', f"<td>{rule(claim)}</td>")
    return f"<tr>{''.join(cells)}</tr>"
