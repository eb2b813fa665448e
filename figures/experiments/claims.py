"""The ledger: every claim of the papers that the book tests, our number beside theirs, and the verdict.

`claims.toml` holds, written by hand, what is claimed, which function measures it and which values count as reproduced;
`python -m figures claims --update` adds what came out. The verdict follows from the two.
"""

import importlib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from figures import FOLDER
from figures.experiments import seals, toml
from figures.experiments.verdicts import chosen

FILE = FOLDER / "claims.toml"
VERDICTS = ("reproduced", "partly", "inconclusive", "not reproduced", "not testable here")
RESULT_LINES = ("ours = ", "interval = ", "verdict = ")


@dataclass(frozen=True)
class Claim:
    """One claim. Those that cannot be measured say why in `untestable`.

    Attributes
    ----------
    id : str, the figure, table or remark of the paper, and what is claimed of it
    paper : str, key of the paper in references.bib
    source : str, where the paper claims it
    statement : str, the claim in our words
    claimed : str, the paper's number
    measure : str, "paper.module.function" in figures/experiments: returns a number, or a `significance.Estimate`
    arguments : dict, for that function
    shown : str, format of our number
    reproduced, partly : [low, high], values of our number with that verdict; fixed before the runs
    hindsight : bool, True if that range was chosen, or the estimate changed, when rows already existed
    formerly : str, id that the claim had in earlier versions of the file
    page, figure : str, chapter, and label of the figure there, that shows it
    data : str, study whose results it is computed from
    why : str, what we know about a verdict; one that is not "reproduced" must have it
    ours, interval, verdict : what came out
    """

    id: str
    paper: str
    source: str
    statement: str
    claimed: str
    measure: str = ""
    arguments: dict = field(default_factory=dict)
    shown: str = "{:g}"
    reproduced: tuple = ()
    partly: tuple = ()
    hindsight: bool = False
    formerly: str = ""
    page: str = ""
    figure: str = ""
    data: str = ""
    why: str = ""
    untestable: str = ""
    ours: float | None = None
    interval: tuple = ()
    verdict: str = ""

    @property
    def function(self):
        """The function that measures the claim, for example `figures.experiments.bui2017.regression_claims.wins`."""
        module, _, name = self.measure.rpartition(".")
        return getattr(importlib.import_module(f"figures.experiments.{module}"), name)

    @property
    def anchor(self):
        """Where the claim stands on the page of the ledger: claims.html#anchor."""
        return self.id.replace(".", "-")

    @property
    def found(self):
        """Our number in words, or why there is none."""
        if self.ours is None:
            return self.untestable or "not computed yet"
        number = self.shown.format(self.ours)
        if self.interval:
            number += f" (95 % interval {self.bare(self.interval)})"
        return number

    def bare(self, interval):
        """An interval in words, its ends written as our number is, without the words around it."""
        form = re.search(r"\{[^}]*\}", self.shown).group()
        return " to ".join(map(form.format, interval))


def _claim(file, number, table):
    try:
        return Claim(**table)
    except TypeError as problem:
        raise ValueError(f"{file}: claim {table.get('id', f'number {number}')}: {problem}") from None


def ledger(file=FILE):
    """All claims, in the order of the file.

    Raises
    ------
    ValueError
        If the file holds an unknown field, an id twice, or a claim that is not measured and does not say why, or that
        is measured without a range that counts as reproduced.
    """
    tables = toml.read(file).get("claim", [])
    if not tables:
        raise ValueError(f"{file} holds no claim; restore the file from the version control")
    claims = [_claim(file, number, table) for number, table in enumerate(tables, start=1)]
    ids = [claim.id for claim in claims]
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(f"{file}: more than one claim is called {', '.join(sorted(twice))}")
    for claim in claims:
        if bool(claim.measure) + bool(claim.untestable) != 1:
            raise ValueError(f"{file}: claim {claim.id} must have one of: measure, untestable")
        if bool(claim.measure) != (len(claim.reproduced) == 2):
            raise ValueError(f"{file}: claim {claim.id} needs reproduced = [low, high], and only if it is measured")
    return claims


def verdicts(*names):
    """What the ledger says of some claims, as a table for the last line of a cell; nothing is measured anew.

    Parameters
    ----------
    names : str
        Ids of claims, such as "bui-fig4-smse-half-vfe", or what they begin with: "bui-fig4", which is no id, stands
        for all that begin with "bui-fig4-".

    Raises
    ------
    ValueError
        If a name fits no claim; the message gives names that are close to it.
    """
    return chosen(ledger(), names)


def measured(claim):
    """Our number, its interval (or ()) and the verdict, computed anew."""
    if not claim.measure:
        return None, (), "not testable here"
    result = claim.function(**claim.arguments)
    value, *interval = result if isinstance(result, tuple) else (result,)
    if not all(map(math.isfinite, (value, *interval))):
        raise ValueError(f"claim {claim.id}: {claim.measure} returned {result}")
    return value, tuple(interval), verdict(value, claim.reproduced, claim.partly, interval)


def verdict(value, reproduced, partly, interval=()):
    """What a number says about a claim: in which of two ranges it lies, ends included.

    A number with an interval has a verdict only if its interval lies in the range as a whole: *reproduced* if all of it is
    in that range, *partly* if all is in that range, *not reproduced* if none of it is in either. Else the number could have
    come out on both sides with other splits or draws, and the verdict is *inconclusive*.
    """
    low, high = interval or (value, value)
    wider = partly or reproduced
    if reproduced[0] <= low and high <= reproduced[1]:
        return "reproduced"
    if wider[0] <= low and high <= wider[1]:
        return "partly"
    return "not reproduced" if high < wider[0] or wider[1] < low else "inconclusive"


def agree(first, second):
    """Whether two results of `measured` are the same but for rounding on another machine."""
    numbers = [[value if value is not None else math.inf, *interval] for value, interval, _ in (first, second)]
    return first[2] == second[2] and len(numbers[0]) == len(numbers[1]) and all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-9) for a, b in zip(*numbers))


def update(file=FILE):
    """Measure all claims and write what came out into the file; returns the ids of those that changed.

    Raises
    ------
    ValueError
        If a claim cannot be measured, as when rows of its study are missing, or somebody edits the file meanwhile; nothing is
        written then.
    """
    before = Path(file).read_text(encoding="utf-8")
    paragraphs = before.rstrip("\n").split("\n\n")
    claims, changed = iter(ledger(file)), []
    for place, paragraph in enumerate(paragraphs):
        if not paragraph.startswith("[[claim]]"):
            continue
        claim = next(claims)
        if f'id = "{claim.id}"' not in paragraph:
            raise ValueError(f"{file}: the lines of {claim.id} must begin with [[claim]], after a line that is empty")
        try:
            now = measured(claim)
        except Exception as problem:        # whatever a measure meets in a table that lacks rows
            look = f"; `python -m figures status {claim.data}` says whether its rows are all there" if claim.data else ""
            raise ValueError(f"claim {claim.id} could not be measured by {claim.measure}: {problem}{look}") from problem
        if agree(now, (claim.ours, claim.interval, claim.verdict)):
            continue
        changed.append(claim.id)
        value, interval, verdict = now
        lines = [line for line in paragraph.split("\n") if not line.startswith(RESULT_LINES)]
        if value is not None:
            lines.append(f"ours = {_number(value)}")
        if interval:
            lines.append(f"interval = [{', '.join(map(_number, interval))}]")
        paragraphs[place] = "\n".join([*lines, f'verdict = "{verdict}"'])
    if changed:
        if Path(file).read_text(encoding="utf-8") != before:
            raise ValueError(f"{file} was edited while the claims were measured; nothing was written, run the command again")
        seals.replace(Path(file), "\n\n".join(paragraphs) + "\n")
    return changed


def _number(value):
    """Six digits, as TOML writes a float."""
    text = f"{value:.6g}"
    return text if set(text) & set(".en") else f"{text}.0"
