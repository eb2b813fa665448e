"""The changelog of rules agrees with the history, where there is one, and with the ledger."""

import json
import re
import subprocess
import tomllib

import pytest
from conftest import ROOT

from figures import __main__ as command_line
from figures.experiments import claims, provenance, rules

KEPT = rules.read()
ENTRIES = {entry["claim"]: entry for entry in KEPT["rule"]}
LEDGER = tomllib.loads(claims.FILE.read_text(encoding="utf-8"))["claim"]


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def history():
    """The commit before the one that wrote the changelog last; "" in a copy that has no such history."""
    oldest = min(entry["written"] for entry in KEPT["rule"] if "written" in entry).split()[-1]
    if git("merge-base", "--is-ancestor", oldest, "HEAD").returncode:
        return ""
    last = git("log", "-1", "--format=%H", "--", "figures/rules.toml").stdout.strip()
    return f"{last}^" if last else ""


def test_the_changelog_is_that_of_the_history():
    """All dates, rules and changes; a copy of the files alone, as `.ci/run` makes, has no history to agree with."""
    revision = history()
    if not revision and git("rev-parse", "--verify", "HEAD").returncode == 0:
        pytest.skip("need the whole history (git fetch --unshallow)")
    if revision:
        assert rules.from_history(revision) == KEPT


def test_the_changelog_names_every_claim():
    assert set(ENTRIES) == {claim["id"] for claim in LEDGER}


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim["id"])
def test_the_changelog_holds_the_rule_that_decides(claim):
    entry = ENTRIES[claim["id"]]
    assert entry["rule"] == rules.rule_of(claim), "commit claims.toml, run `python -m figures rules --update`, commit rules.toml"
    assert (entry["status"] == rules.HINDSIGHT) == claim.get("hindsight", False), "the ledger and the history must say the same"
    assert (entry["status"] == rules.NOT_MEASURED) == ("measure" not in claim)
    if entry["status"] == rules.BEFORE:
        assert entry["written"][:16] <= entry["rows"][:16]       # in one minute the order of the commits decides


def test_withdrawn_failures_are_in_it():
    withdrawn = {entry["claim"]: entry["change"] for entry in KEPT["withdrawn"]}
    for claim in ("csa-order-budget", "csa-fitc-bui", "vil-fig7"):
        assert "its verdict not reproduced" in withdrawn[claim]


def test_what_an_audit_found_is_flagged():
    """24 claims whose rows came first and six numbers that were estimated otherwise when all rows were there."""
    flagged = {name for name, entry in ENTRIES.items() if entry["status"] == rules.HINDSIGHT}
    of_study = {claim["id"]: claim.get("data", "") for claim in LEDGER}
    for study, number in (("bui_fig8", 9), ("bui_fig3", 9), ("uci_whole", 30), ("csa_sweeps", 1)):
        measured = {name for name, entry in ENTRIES.items()
                    if of_study[name] == study and entry["status"] != rules.NOT_MEASURED}
        assert measured <= flagged and len(measured) == number

    def estimated_in(commit):
        return {name for name, entry in ENTRIES.items()
                if any(f"{commit}: estimated otherwise" in change for change in entry["changes"])}

    moved = estimated_in("f64371b")
    assert {"bui-fig4-smse-half-vfe", "bui-fig4-smse-half-ep", "bui-fig4-smse-vfe-ep", "bui-fig4-smll-ep-vfe",
            "bui-fig4-smll-ep-half", "bui-fig4-smll-half-vfe"} <= moved <= flagged
    assert {"bui-fig4b-smse-best", "bui-fig5-smse-half", "bui-fig5-smse-vfe"} <= moved
    assert {"vil-tab2-cells", "vil-tab3-cells", "vil-fig3-overlap"} <= estimated_in("e19d7bb")


def test_a_chapter_says_how_many_of_its_rules_were_fixed_before():
    cells = json.loads((ROOT / "chapters/study-many-classes.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = re.search(r'verdicts\((.+?)\)$', "\n".join("".join(cell["source"]) for cell in cells), re.MULTILINE).group(1)
    chosen = claims.verdicts(*re.findall(r'"([^"]+)"', shown)).claims
    before = sum(ENTRIES[claim.id]["status"] == rules.BEFORE for claim in chosen)
    assert before == 7 and any("\n\nSeven of the rules" in "".join(cell["source"]) for cell in cells)


def test_dates_are_dates():
    for entry in KEPT["rule"]:
        for name in ("written", "rows"):
            assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d [0-9a-f]{12}", entry.get(name, "2026-01-01 00:00 0123456789ab"))


# The machinery, on a small repository -------------------------------------------------------------------------------

CLAIM = {"id": "one", "measure": "folder.module.count", "reproduced": [1.0, 2.0], "data": "study"}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A function that commits a ledger, and rows if there are any, a minute after the last commit."""
    minutes = iter(range(1, 60))
    (tmp_path / "figures/results").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(provenance, "FOLDER", tmp_path / "figures")
    for cache in (rules._blob, rules._claims, rules._first_rows, rules._is_ancestor):
        cache.cache_clear()

    def commit(claims, rows=None, subject="Change", study="study"):
        lines = ["\n".join(["[[claim]]", *(f"{name} = {json.dumps(value)}" for name, value in claim.items()), ""])
                 for claim in claims]
        (tmp_path / rules.LEDGER).write_text("\n".join(lines) or "claim = []\n")
        if rows:
            (tmp_path / f"figures/results/{study}.csv").write_text(rows)
        date = f"2026-01-01 10:{next(minutes):02}:00 +0000"
        monkeypatch.setenv("GIT_AUTHOR_DATE", date)
        monkeypatch.setenv("GIT_COMMITTER_DATE", date)
        for words in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", subject]):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    yield commit
    for cache in (rules._blob, rules._claims, rules._first_rows, rules._is_ancestor):
        cache.cache_clear()


def changelog():
    found = rules.from_history()
    return {entry["claim"]: entry for entry in found["rule"]}, found["withdrawn"]


def test_a_changelog_needs_the_whole_history(repository, tmp_path, monkeypatch):
    repository([CLAIM])
    repository([CLAIM], rows="a\n1\n")
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{tmp_path}", str(tmp_path / "shallow")], check=True)
    (tmp_path / "bare").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for folder, words in (("shallow", "git fetch --unshallow"), ("bare", "no git checkout")):
        monkeypatch.setattr(provenance, "FOLDER", tmp_path / folder / "figures")
        with pytest.raises(ValueError, match=words):
            rules.update(tmp_path / "rules.toml")
    assert not (tmp_path / "rules.toml").exists()


def test_a_rule_before_its_rows(repository):
    repository([CLAIM])
    repository([CLAIM], rows="a\n1\n")
    repository([CLAIM | {"ours": 1.5, "verdict": "reproduced"}])
    entry = changelog()[0]["one"]
    assert (entry["status"], entry["rule"], entry["changes"]) == (rules.BEFORE, "count(): reproduced 1 to 2", [])
    assert entry["written"].startswith("2026-01-01 10:01") and entry["rows"].startswith("2026-01-01 10:02")


def test_a_rule_in_the_commit_of_its_rows_or_after_them_is_hindsight(repository):
    repository([CLAIM], rows="a\n1\n")
    assert changelog()[0]["one"]["status"] == rules.HINDSIGHT


def test_a_rule_that_changes_after_its_rows_is_hindsight_and_says_why(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n1\n")
    repository([CLAIM | {"ours": 3.0, "verdict": "reproduced", "reproduced": [1.0, 4.0]}], subject="Widen a range")
    entry = changelog()[0]["one"]
    assert entry["status"] == rules.HINDSIGHT
    (change,) = entry["changes"]
    assert "rule was count(): reproduced 1 to 2, its verdict not reproduced; now" in change and "(Widen a range)" in change


def test_a_rule_that_was_away_and_came_back_keeps_its_date(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0}], rows="a\n1\n")
    repository([CLAIM | {"ours": 3.0, "reproduced": [1.0, 4.0]}])
    repository([CLAIM | {"ours": 3.0}])
    assert changelog()[0]["one"]["status"] == rules.BEFORE


def test_a_number_that_moves_without_new_rows_was_estimated_otherwise(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0}], rows="a\n1\n")
    repository([CLAIM | {"ours": 2.0}], rows="a\n1\n2\n")
    assert changelog()[0]["one"]["changes"] == []
    repository([CLAIM | {"ours": 1.0}])
    entry = changelog()[0]["one"]
    assert entry["status"] == rules.HINDSIGHT and "estimated otherwise: 2" in entry["changes"][0]


def test_rows_that_leave_a_number_alone_do_not_hide_that_it_is_estimated_otherwise_later(repository):
    repository([CLAIM, CLAIM | {"id": "two"}])
    repository([CLAIM | {"ours": 3.0}, CLAIM | {"id": "two", "ours": 3.0}], rows="a\n1\n")
    repository([CLAIM | {"ours": 3.0}, CLAIM | {"id": "two", "ours": 2.0}], rows="a\n1\n2\n")
    repository([CLAIM | {"ours": 1.0}, CLAIM | {"id": "two", "ours": 2.0}])
    entries, _ = changelog()
    assert "estimated otherwise: 3" in entries["one"]["changes"][0] and entries["two"]["changes"] == []


def test_a_number_that_was_away_is_compared_with_the_one_before(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a,check\n1,x\n")
    repository([CLAIM])
    repository([CLAIM | {"ours": 1.0, "verdict": "reproduced"}], rows="a,check,commit\n1,y,later\n")    # the same results
    (change,) = changelog()[0]["one"]["changes"]
    assert "estimated otherwise: 3, not reproduced, is now 1, reproduced" in change


def test_a_number_of_a_rule_that_changed_while_it_was_away_is_no_other_estimate(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n1\n")
    repository([CLAIM | {"measure": "folder.module.share"}])
    repository([CLAIM | {"measure": "folder.module.share", "ours": 1.0, "verdict": "reproduced"}])
    (change,) = changelog()[0]["one"]["changes"]
    assert "rule was count()" in change


def test_a_verdict_that_new_rows_have_turned_is_in_it(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n1\n")
    repository([CLAIM | {"ours": 1.0, "verdict": "reproduced"}], rows="a\n1\n2\n")
    entry = changelog()[0]["one"]
    assert entry["status"] == rules.BEFORE
    assert "judged by new rows of study: 3, not reproduced, is now 1, reproduced" in entry["changes"][0]


def test_a_line_of_the_history_that_lacks_a_measurement_does_not_take_it_back(repository, tmp_path):
    def git_here(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *words], cwd=tmp_path, check=True)

    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n1\n")
    git_here("branch", "side")
    repository([CLAIM | {"ours": 1.0, "verdict": "reproduced"}])
    git_here("checkout", "-q", "side")
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced", "why": "Other words."}])
    git_here("checkout", "-q", "-")
    git_here("merge", "-q", "-s", "ours", "--no-commit", "side")
    repository([CLAIM | {"ours": 1.0, "verdict": "reproduced", "why": "Other words."}])
    assert ["estimated otherwise" in change for change in changelog()[0]["one"]["changes"]].count(True) == 1


def test_a_rule_that_saw_the_rows_of_one_study_is_no_older_for_those_of_the_next(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n1\n")
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}], rows="a\n2\n", study="longer")
    repository([CLAIM | {"ours": 1.5, "verdict": "reproduced", "data": "longer"}])
    entry = changelog()[0]["one"]
    assert entry["rows"].startswith("2026-01-01 10:02") and entry["status"] == rules.BEFORE
    assert "judged by the rows of longer; by those of study it was 3, not reproduced" in entry["changes"][0]


def test_comments_and_words_are_rules_and_renamed_claims_keep_theirs(repository):
    repository([{"id": "one", "open": "Reproduced will mean: two."}])
    repository([CLAIM], rows="a\n1\n")
    assert changelog()[0]["one"]["status"] == rules.BEFORE        # for the words are, though the form is not
    repository([CLAIM | {"id": "two", "formerly": "one"}])
    entries, withdrawn = changelog()
    assert entries["two"]["written"].startswith("2026-01-01 10:01") and withdrawn == []


def test_a_claim_that_is_renamed_when_its_number_moves_was_estimated_otherwise(repository):
    repository([CLAIM])
    repository([CLAIM | {"ours": 3.0}], rows="a\n1\n")
    repository([CLAIM | {"id": "two", "formerly": "one", "ours": 1.0}])
    entry = changelog()[0]["two"]
    assert entry["status"] == rules.HINDSIGHT and "estimated otherwise: 3" in entry["changes"][0]


def test_claims_that_vanish_or_are_measured_no_more_are_withdrawn(repository):
    repository([CLAIM | {"ours": 3.0, "verdict": "not reproduced"}, CLAIM | {"id": "two"}], rows="a\n1\n")
    repository([{"id": "two", "untestable": "no data"}], subject="Drop two")
    entries, withdrawn = changelog()
    assert [entry["claim"] for entry in withdrawn] == ["two", "one"]
    assert "its verdict not reproduced (Drop two)" in withdrawn[1]["change"]
    assert entries["two"]["status"] == rules.NOT_MEASURED


def test_the_command_tells_when_a_rule_was_withdrawn(capsys):
    assert command_line.main(["rules"]) == 0
    assert "vil-fig7: withdrawn; 2026-11-23" in capsys.readouterr().out
