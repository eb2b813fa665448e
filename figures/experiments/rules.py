"""The changelog of the ledger's rules, made from the history of this repository.

`python -m figures rules --update` reads every version of `claims.toml` and writes `rules.toml`: for each claim when its rule was
written, when the first rows came that it judged, and what has changed since, with the subject of the commit that
did it. A rule is what decides a verdict: the function that measures, its arguments, and the two ranges. Numbers that moved
although neither the rows nor the rule had changed were estimated otherwise.

A rule counts as fixed before the rows if the commit of its last change comes before that of the first rows, and the number
has not been estimated otherwise since. What the history cannot show counts as hindsight. Some rules were first written as
comments, or in words in the field `open`, while their study was still running: they have the date of those.
"""

import functools
import json
import math
import re
import subprocess
import tomllib

from figures import FOLDER
from figures.experiments import seals

LEDGER, TABLES, FILE = "figures/claims.toml", "figures/results", FOLDER / "rules.toml"
BEFORE, HINDSIGHT, NO_ROWS, NOT_MEASURED = "before", "hindsight", "no rows", "not measured"
HEAD = """# The changelog of the rules in claims.toml, written by `python -m figures rules --update` from the history.
# Commit claims.toml first: a rule has a date when it is committed.
"""
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
    measured_with = {}      # the rows that gave a claim's number when it last changed
    events = [event for commit in commits for event in _events(commit, measured_with)]
    current = _claims(_git("rev-parse", f"{revision}:{LEDGER}"))
    gone = [event for event in events if event["kind"] == "withdrawn" and event["claim"] not in _former(current)]
    return {"rule": [_entry(claim, events, _earliest(_studies(claim, commits), revision)) for claim in current.values()],
            "withdrawn": [{"claim": event["claim"], "change": event["text"]} for event in gone
                          if event["claim"] not in current or not current[event["claim"]].get("measure")]}


def _former(claims):
    return {claim["formerly"] for claim in claims.values() if claim.get("formerly")}


def _commits(revision):
    """Commits that touched the ledger, the oldest first: (hash, parent, date, subject); merges change nothing by themselves."""
    lines = _git("log", "--reverse", "--no-merges", "--date=format:%Y-%m-%d %H:%M", "--format=%H%x09%P%x09%ad%x09%s", revision,
                 "--", LEDGER).splitlines()
    return [line.split("\t", 3) for line in lines]


def _events(commit, measured_with):
    """What a commit did to the claims."""
    name, parent, date, subject = commit
    new, old = _claims(_blob(name, LEDGER)), _claims(_blob(parent, LEDGER)) if parent else {}
    when = {"date": date, "commit": name[:12]}

    def event(claim, kind, what):
        before, now = old.get(claim, {}), new.get(claim, {})
        return when | {"claim": claim, "kind": kind, "text": f"{date} {name[:7]}: {what} ({subject})", "rule": rule_of(now),
                       "numbers": (before.get("ours"), now.get("ours"))}

    for claim, now in new.items():
        before = old.get(claim) or old.get(now.get("formerly", ""), {})
        rows = _blob(name, f"{TABLES}/{now.get('data', '')}.csv") if now.get("data") else ""
        if not rule_of(before) and rule_of(now):
            yield event(claim, "written", f"rule written: {rule_of(now)}")
        elif rule_of(before) and not rule_of(now):
            yield event(claim, "withdrawn", f"no longer measured; its rule was {rule_of(before)}, its verdict {_verdict(before)}")
        elif rule_of(before).startswith(IN_WORDS) and not rule_of(now).startswith(IN_WORDS):
            yield event(claim, "put into form", f"rule put into the form {rule_of(now)}")
        elif rule_of(before) != rule_of(now):
            yield event(claim, "changed", f"rule was {rule_of(before)}, its verdict {_verdict(before)}; now {rule_of(now)}")
        elif before.get("data") and now.get("data") not in (None, before["data"]):
            yield event(claim, "other rows", f"judged by the rows of {now['data']}; by those of {before['data']} it was "
                                             f"{_number(before)}, {_verdict(before)}")
        elif _moved(before, now) and rows and rows == measured_with.get(claim):
            yield event(claim, "estimated", f"estimated otherwise: {before['ours']:g}, {_verdict(before)}, is now "
                                            f"{now['ours']:g}, {_verdict(now)}")
        elif _same_number(before, now) and _verdict(before) != _verdict(now):
            yield event(claim, "judged", f"judged otherwise: was {_verdict(before)}, is now {_verdict(now)}, by the same number")
        if before.get("ours") != now.get("ours"):
            measured_with[claim] = rows
    for claim in sorted(old.keys() - new.keys() - _former(new)):
        if rule_of(old[claim]):
            yield event(claim, "withdrawn", f"withdrawn; its rule was {rule_of(old[claim])}, its verdict {_verdict(old[claim])}")


def _verdict(claim):
    return claim.get("verdict") or "not known yet"


def _number(claim):
    return f"{claim['ours']:g}" if "ours" in claim else "not measured"


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
    lines = _git("log", "--reverse", "--no-merges", "--diff-filter=A", "--date=format:%Y-%m-%d %H:%M", "--format=%H%x09%ad",
                 revision, "--", f"{TABLES}/{study}.csv").splitlines()
    return tuple(lines[0].split("\t")) if lines else ()


@functools.cache
def _is_ancestor(first, second):
    done = subprocess.run(["git", "merge-base", "--is-ancestor", first, second], cwd=FOLDER.parent, check=False)
    return done.returncode == 0


@functools.cache
def _blob(commit, path):
    """The hash of a file's content in a commit; "" if it is not there."""
    return _git("ls-tree", commit.split()[0], path).split("\t")[0].rpartition(" ")[2]


@functools.cache
def _claims(blob):
    """The claims of one version of the ledger: id -> dict."""
    text = COMMENTED.sub(r"\1", _git("cat-file", "blob", blob)) if blob else "claim = []"
    return {claim["id"]: claim for claim in tomllib.loads(text)["claim"]}


def _git(*words):
    done = subprocess.run(["git", *words], cwd=FOLDER.parent, capture_output=True, check=True, encoding="utf-8")
    return done.stdout.strip()


def read(file=FILE):
    """The changelog that is kept."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def update(file=FILE):
    """Write the changelog anew from the history; returns how many claims there are of each status.

    Raises
    ------
    ValueError
        If the whole history is not there.
    """
    try:
        shallow = _git("rev-parse", "--is-shallow-repository") == "true"
    except (OSError, subprocess.CalledProcessError):
        raise ValueError("the changelog is made from the history of the repository, and this is no git checkout") from None
    if shallow:
        raise ValueError("the changelog needs the whole history, and this clone has a part of it; fetch the rest with "
                         "`git fetch --unshallow`")
    changelog = from_history()
    text = HEAD
    for kind, entries in changelog.items():
        for entry in entries:
            text += "\n".join(["", f"[[{kind}]]", *(f"{name} = {_toml(value)}" for name, value in entry.items()), ""])
    seals.replace(file, text)
    return {status: sum(entry["status"] == status for entry in changelog["rule"])
            for status in (BEFORE, HINDSIGHT, NO_ROWS, NOT_MEASURED)}


def _toml(value):
    if isinstance(value, list):
        return "[" + "".join(f"\n  {_toml(item)}," for item in value) + "\n]" if value else "[]"
    return json.dumps(value, ensure_ascii=False)
