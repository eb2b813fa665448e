"""The changelog of the ledger's rules, made from the history of this repository.

`python -m figures rules --update` reads every version of `claims.toml` and writes `rules.toml`: for each claim when its rule was
written, when the first rows came that it judged, and what has changed since, with the subject of the commit that
did it. A rule is what decides a verdict: the function that measures, its arguments, and the two ranges. Numbers that moved
although neither the rows nor the rule had changed were estimated otherwise.

A rule counts as fixed before the rows if the commit of its last change comes before that of the first rows, and the number
has not been estimated otherwise since. What the history cannot show counts as hindsight. Some rules were first written as
comments, or in words in the field `open`, while their study was still running: they have the date of those.
"""

import csv
import functools
import json
import math
import re
import subprocess
import tomllib

from figures import FOLDER
from figures.experiments import provenance, seals, studies, toml

LEDGER, TABLES, FILE = "figures/claims.toml", "figures/results", FOLDER / "rules.toml"
BEFORE, HINDSIGHT, NO_ROWS, NOT_MEASURED = "before", "hindsight", "no rows", "not measured"
HEAD = """# The changelog of the rules in claims.toml, written by `python -m figures rules --update` from the history.
# Commit claims.toml first: a rule has a date when it is committed.
"""
CIRCUMSTANCES = set(studies.BOOKKEEPING)
COMMENTED = re.compile(r"^# ((measure|arguments|reproduced|partly) = .*)$", re.MULTILINE)
IN_WORDS = "in words: "


def rule_of(claim):
    """What decides the verdict of a claim of the file, a dict, in words; "" if nothing does."""
    if not claim.get("measure"):
        said = re.search(r"Reproduced (will mean|will be|means).*", claim.get("open", ""))
        return IN_WORDS + said.group() if said else ""
    given = ", ".join(f"{name} = {json.dumps(value)}" for name, value in sorted(claim.get("arguments", {}).items()))
    ranges = [f"{name} {_range(claim[name])}" for name in ("reproduced", "partly") if claim.get(name)]
    return f"{claim['measure'].rpartition('.')[2]}({given}): {', '.join(ranges)}"


def _range(limits):
    return " to ".join(f"{limit:g}" for limit in limits)


def from_history(revision="HEAD"):
    """The changelog as of a revision: {"rule": [...], "withdrawn": [...]}, as `rules.toml` holds it."""
    commits = _commits(revision)
    events, measured = [], {}       # commit -> claim -> its last number and verdict, and the rows they come from
    for name, parents, date, subject in commits:
        new, known = _claims(_blob(name, LEDGER)), [measured[parent] for parent in parents]
        measured[name] = _joined(new, known)
        if len(parents) < 2:        # a merge changes nothing by itself
            old = _claims(_blob(parents[0], LEDGER)) if parents else {}
            events += _events((name, date, subject), old, new, measured[name])
    current = _claims(provenance.git("rev-parse", f"{revision}:{LEDGER}"))
    gone = [event for event in events if event["kind"] == "withdrawn" and event["claim"] not in _former(current)]
    return {"rule": [_entry(claim, events, _earliest(_studies(claim, commits), revision)) for claim in current.values()],
            "withdrawn": [{"claim": event["claim"], "change": event["text"]} for event in gone
                          if event["claim"] not in current or not current[event["claim"]].get("measure")]}


def _former(claims):
    return {claim["formerly"] for claim in claims.values() if claim.get("formerly")}


def _commits(revision):
    """Commits that touched the ledger, parents first: (hash, parents among them, date, subject)."""
    lines = provenance.git("log", "--reverse", "--topo-order", "--parents", "--date=format-local:%Y-%m-%d %H:%M",
                           "--format=%H%x09%P%x09%ad%x09%s", revision, "--", LEDGER).splitlines()
    return [(name, parents.split(), date, subject) for name, parents, date, subject in (line.split("\t", 3) for line in lines)]


def _joined(claims, sides):
    """What is known of each claim where lines of the history meet: that of the side whose number was kept, else of the first."""
    joined = {claim: known for side in reversed(sides) for claim, known in side.items()}
    for side in reversed(sides):
        joined |= {claim: known for claim, known in side.items() if known.get("ours") == claims.get(claim, {}).get("ours")}
    return joined


def _events(commit, old, new, measured):
    """What a commit did to the claims; `measured` holds what was known before it, and is brought up to date.

    A commit in which a number differs has measured all claims, by the rows that it finds. A claim that is without a number
    for a while is compared with its last one.
    """
    name, date, subject = commit

    def event(claim, kind, what, numbers=()):
        return {"date": date, "commit": name[:12], "claim": claim, "kind": kind, "text": f"{date} {name[:7]}: {what} ({subject})",
                "rule": rule_of(new.get(claim, {})), "numbers": numbers}

    measures = any(claim.get("ours") != old.get(claim_id, {}).get("ours") for claim_id, claim in new.items())
    for claim, now in new.items():
        former = now.get("formerly", "")
        before, last = old.get(claim) or old.get(former, {}), measured.get(claim, measured.get(former, {}))
        rows = _blob(name, f"{TABLES}/{now.get('data', '')}.csv") if now.get("data") else ""
        kind, what = _change(before, now, last, rows)
        if kind:
            yield event(claim, kind, what, (last.get("ours"), now.get("ours")))
        if kind == "changed":
            last = {}       # its number was that of another rule
        measured[claim] = {"ours": now["ours"], "verdict": now.get("verdict"),
                           "rows": rows if measures else last.get("rows", rows)} if "ours" in now else last
    for claim in sorted(old.keys() - new.keys() - _former(new)):
        if rule_of(old[claim]):
            yield event(claim, "withdrawn", f"withdrawn; its rule was {rule_of(old[claim])}, its verdict {_verdict(old[claim])}")


def _change(before, now, last, rows):
    """What happened to a claim from one version of the ledger to the next: its kind and the words for it, or ("", "").

    `last` holds its number, verdict and rows when it was last measured; `rows` is the table that judges it now.
    """
    rule_before, rule, study = rule_of(before), rule_of(now), now.get("data")
    numbers = f"{_measured(last)}, is now {_measured(now)}"
    if rule and not rule_before:
        return "written", f"rule written: {rule}"
    if rule_before and not rule:
        return "withdrawn", f"no longer measured; its rule was {rule_before}, its verdict {_verdict(before)}"
    if rule_before.startswith(IN_WORDS) and not rule.startswith(IN_WORDS):
        return "put into form", f"rule put into the form {rule}"
    if rule_before != rule:
        return "changed", f"rule was {rule_before}, its verdict {_verdict(before)}; now {rule}"
    if before.get("data") and study not in (None, before["data"]):
        return "other rows", f"judged by the rows of {study}; by those of {before['data']} it was {_measured(before)}"
    if _moved(last, now) and rows and _results(rows) == _results(last["rows"]):
        return "estimated", f"estimated otherwise: {numbers}"
    if _moved(last, now) and rows and _verdict(last) != _verdict(now):
        return "more rows", f"judged by new rows of {study}: {numbers}"
    if _same_number(last, now) and _verdict(last) != _verdict(now):
        return "judged", f"judged otherwise: was {_verdict(last)}, is now {_verdict(now)}, by the same number"
    return "", ""


def _verdict(claim):
    return claim.get("verdict") or "not known yet"


def _measured(claim):
    return f"{claim['ours']:g}, {_verdict(claim)}" if "ours" in claim else f"not measured, {_verdict(claim)}"


def _moved(before, now):
    return "ours" in before and "ours" in now and not math.isclose(before["ours"], now["ours"], rel_tol=1e-3, abs_tol=1e-6)


def _same_number(before, now):
    return "ours" in before and "ours" in now and not _moved(before, now)


def _studies(claim, commits):
    """The studies whose rows the present rule of a claim has judged: that of now, and those before it."""
    names, rule = {claim["id"], claim.get("formerly", "")}, rule_of(claim)
    versions = [_claims(_blob(commit, LEDGER)).get(name, {}) for commit, *_ in commits for name in names]
    return {version["data"] for version in versions if version.get("data") and rule_of(version) == rule}


def _entry(claim, events, rows):
    names = {claim["id"], claim.get("formerly", "")}
    own = sorted((event for event in events if event["claim"] in names), key=lambda event: event["date"])
    rule = rule_of(claim)
    fixed = [event for event in own if event["kind"] in ("written", "changed")]
    last = next((event for event in fixed if event["rule"] == rule), fixed[-1] if fixed else None)     # it may have returned
    entry = {"claim": claim["id"], "status": _status(claim, rule, last, own, rows), "rule": rule}
    if fixed:
        entry["written"] = f"{fixed[0]['date']} {fixed[0]['commit']}"
    if rows:
        entry["rows"] = f"{rows[1]} {rows[0][:12]}"
    return entry | {"changes": [event["text"] for event in own if event is not fixed[0]] if fixed else
                    [event["text"] for event in own]}


def _status(claim, rule, last, own, rows):
    if not rule:
        return NOT_MEASURED
    if claim.get("hindsight"):
        return HINDSIGHT
    if not rows:
        return NO_ROWS
    numbers = [event["numbers"] for event in own if event["kind"] == "estimated"]
    estimated = numbers and not math.isclose(numbers[0][0], numbers[-1][1], rel_tol=1e-3)       # and not back again
    is_before = last and last["commit"] != rows[0][:12] and _is_ancestor(last["commit"], rows[0])
    return BEFORE if is_before and not estimated else HINDSIGHT


def _earliest(studies, revision):
    """The commit that first held rows of one of the studies, and its date; () if there is none."""
    return min(filter(None, (_first_rows(study, revision) for study in studies)), key=lambda rows: rows[1], default=())


@functools.cache
def _first_rows(study, revision):
    """The commit that first held rows of a study, and its date; () if there is none."""
    lines = provenance.git("log", "--reverse", "--no-merges", "--diff-filter=A", "--date=format-local:%Y-%m-%d %H:%M",
                           "--format=%H%x09%ad", revision, "--", f"{TABLES}/{study}.csv").splitlines()
    return tuple(lines[0].split("\t")) if lines else ()


@functools.cache
def _is_ancestor(first, second):
    return provenance.git("merge-base", first, second).startswith(first)


@functools.cache
def _blob(commit, path):
    """The hash of a file's content in a commit; "" if it is not there."""
    return provenance.git("ls-tree", commit, path).split("\t")[0].rpartition(" ")[2]


@functools.cache
def _results(blob):
    """The rows of one version of a table, in any order, without what says where and when they were computed."""
    rows = csv.DictReader(provenance.git("cat-file", "blob", blob).splitlines()) if blob else ()
    return frozenset(tuple(value for name, value in row.items() if name not in CIRCUMSTANCES) for row in rows)


@functools.cache
def _claims(blob):
    """The claims of one version of the ledger: id -> dict."""
    text = COMMENTED.sub(r"\1", provenance.git("cat-file", "blob", blob)) if blob else "claim = []"
    return {claim["id"]: claim for claim in tomllib.loads(text)["claim"]}


def read(file=FILE):
    """The changelog that is kept."""
    return toml.read(file)


def update(file=FILE):
    """Write the changelog anew from the history; returns how many claims there are of each status.

    Raises
    ------
    ValueError
        If the whole history is not there.
    """
    try:
        shallow = provenance.git("rev-parse", "--is-shallow-repository") == "true"
        provenance.git("rev-parse", "--verify", f"HEAD:{LEDGER}")     # else this is the repository of a folder around ours
    except (OSError, subprocess.CalledProcessError):
        raise ValueError("the changelog is made from the history of the repository, and this is no git checkout; "
                         "clone the repository") from None
    if shallow:
        raise ValueError("the changelog needs the whole history, and this clone has a part of it; fetch the rest with "
                         "`git fetch --unshallow`")
    changelog = from_history()
    text = HEAD
    for kind, entries in changelog.items():
        for entry in entries:
            text += toml.table(f"[[{kind}]]", entry)
    seals.replace(file, text)
    return {status: sum(entry["status"] == status for entry in changelog["rule"])
            for status in (BEFORE, HINDSIGHT, NO_ROWS, NOT_MEASURED)}
