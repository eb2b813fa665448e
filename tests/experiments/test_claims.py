"""The ledger of claims: no claim without a verdict, no verdict without a recomputation."""

import re
import textwrap
import tomllib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from figures import __main__ as command_line
from figures.experiments import claims, rules, runner, significance, tables
from figures.experiments.bui2017 import regression_claims, uci_regression
from figures.experiments.villacampa2017 import claims as villacampa_claims

LEDGER = claims.ledger()


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_claim_is_measured_again(claim):
    now = claims.measured(claim)
    assert claims.agree(now, (claim.ours, claim.interval, claim.verdict)), (
        f"claims.toml says {claim.found}, {claim.verdict}; now it is {now}: run `python -m figures claims --update`")
    assert claim.verdict in claims.VERDICTS


def test_the_ledger_is_large():
    assert len(LEDGER) >= 40
    assert sum(claim.verdict in claims.VERDICTS[:3] for claim in LEDGER) >= 40


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_claim_says_what_a_reader_needs(claim):
    assert f"{{{claim.paper}," in (ROOT / "references.bib").read_text()
    assert claim.statement.endswith(".") and claim.source and claim.claimed
    if claim.measure:
        assert claim.function.__doc__, "the page shows what the function measures"
    if claim.partly:
        assert claim.partly[0] <= claim.reproduced[0] <= claim.reproduced[1] <= claim.partly[1]


def finished(claim):
    return not (claim.data and tables.missing_runs(runner.load(claim.data)))


FAILED = [claim for claim in LEDGER if claim.verdict in ("partly", "inconclusive", "not reproduced") and finished(claim)]


@pytest.mark.parametrize("claim", FAILED, ids=lambda claim: claim.id)
def test_what_did_not_reproduce_says_why(claim):
    assert claim.why


# The machinery --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("value", "expected"), [(57.0, "reproduced"), (77.0, "reproduced"), (77.1, "partly"), (50, "partly"),
                                                 (49.9, "not reproduced")])
def test_verdict(value, expected):
    assert claims.verdict(value, [57.0, 77.0], [50.0, 100.0]) == expected


def test_verdict_without_a_range_for_partly():
    assert claims.verdict(1.1, [0, 1], ()) == "not reproduced"
    assert claims.verdict(0.9, [0, 1], (), (0.8, 1.1)) == "inconclusive"


@pytest.mark.parametrize(("interval", "expected"), [
    ((57.0, 77.0), "reproduced"), ((56.9, 70.0), "partly"), ((50.0, 56.0), "partly"), ((49.4, 61.9), "inconclusive"),
    ((40.0, 49.9), "not reproduced"), ((40.0, 50.0), "inconclusive"), ((40.0, 110.0), "inconclusive"),
])
def test_a_verdict_holds_for_the_whole_interval(interval, expected):
    """As the number itself may be anywhere in it: 56 % with an interval from 49 to 62 says nothing about 50 %."""
    assert claims.verdict(sum(interval) / 2, [57.0, 77.0], [50.0, 100.0], interval) == expected


CLAIM = """\
    # The beginning.

    [[claim]]
    id = "one"
    paper = "bui2017"
    source = "figure 1"
    statement = "It is five."
    claimed = "5"
    measure = "significance.holm"
    arguments = { p_values = [0.5] }
    reproduced = [4.0, 6.0]
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A ledger of one claim whose measurement the test decides."""
    path = tmp_path / "claims.toml"
    path.write_text(textwrap.dedent(CLAIM))
    monkeypatch.setattr(significance, "holm", lambda p_values: 5.123456789)
    return path


def test_update_writes_what_came_out_and_keeps_the_rest(file, monkeypatch):
    before = file.read_text()
    assert claims.update(file) == ["one"]
    assert file.read_text() == before + 'ours = 5.12346\nverdict = "reproduced"\n'
    assert claims.update(file) == []
    monkeypatch.setattr(significance, "holm", lambda p_values: significance.Estimate(7.0, 6.5, 7.5))
    assert claims.update(file) == ["one"]
    assert file.read_text() == before + 'ours = 7.0\ninterval = [6.5, 7.5]\nverdict = "not reproduced"\n'
    (claim,) = claims.ledger(file)
    assert claim.found == "7 (95 % interval 6.5 to 7.5)"


def test_rounding_is_no_change_but_anything_more_is():
    result = (5.0, (4.0, 6.0), "reproduced")
    assert claims.agree(result, (5.00001, (4.0, 6.0), "reproduced"))
    assert not claims.agree(result, (5.001, (4.0, 6.0), "reproduced"))
    assert not claims.agree((0.007, (), "reproduced"), (0.00705, (), "reproduced"))
    assert not claims.agree(result, (5.0, (4.0, 6.1), "reproduced"))
    assert not claims.agree(result, (5.0, (), "reproduced"))
    assert not claims.agree(result, (5.0, (4.0, 6.0), "partly"))
    assert not claims.agree((None, (), "not testable here"), (5.0, (), "not testable here"))


@pytest.mark.parametrize(("change", "message"), [
    (("reproduced = [4.0, 6.0]\n", ""), r"claim one needs reproduced = \[low, high\]"),
    (("reproduced =", "reproduces ="), r"claims\.toml: claim one: .* unexpected keyword argument 'reproduces'"),
    (("reproduced =", "reproduced"), r"claims\.toml: Expected '='"),
    (('measure = "significance.holm"\n', ""), "claim one must have one of: measure, untestable"),
    (('measure = "significance.holm"\n', 'measure = "significance.holm"\nuntestable = "later"\n'), "must have one of"),
])
def test_wrong_ledgers(file, change, message):
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(ValueError, match=message):
        claims.ledger(file)


def test_two_claims_of_one_name(file):
    file.write_text(file.read_text() + "\n" + file.read_text())
    with pytest.raises(ValueError, match="more than one claim is called one"):
        claims.ledger(file)


def test_a_number_that_is_none_is_an_error(file, monkeypatch):
    monkeypatch.setattr(significance, "holm", lambda p_values: float("nan"))
    with pytest.raises(ValueError, match=r"claim one: significance.holm returned nan"):
        claims.update(file)


def test_a_claim_whose_rows_are_missing_names_itself_and_its_study(file, monkeypatch):
    file.write_text(file.read_text() + 'data = "csa_size"\n')

    def lacks_rows(p_values):
        raise TypeError("missing 1 required positional argument")

    monkeypatch.setattr(significance, "holm", lacks_rows)
    with pytest.raises(ValueError, match=r"claim one could not be measured by significance\.holm: missing .* status csa_size`"):
        claims.update(file)


def test_what_somebody_writes_while_claims_are_measured_is_not_lost(file, monkeypatch):
    def edited(p_values):
        file.write_text(file.read_text() + "# a new rule\n")
        return 7.0

    monkeypatch.setattr(significance, "holm", edited)
    with pytest.raises(ValueError, match="was edited while the claims were measured; nothing was written"):
        claims.update(file)
    assert file.read_text().endswith("# a new rule\n")


def test_a_ledger_without_claims(file):
    file.write_text("")
    with pytest.raises(ValueError, match="holds no claim"):
        claims.ledger(file)


@pytest.mark.parametrize(("options", "words"), [(["--paper", "nope"], "no claim is of 'nope'; the ledger has bui2017"),
                                                (["--update", "--paper", "bui2017"], "leave out --paper and --verdict")])
def test_wrong_choices_of_claims(capsys, options, words):
    assert command_line.main(["claims", *options]) == 2
    assert words in capsys.readouterr().err


def test_the_file_is_toml_that_others_can_read():
    tables = tomllib.loads(claims.FILE.read_text(encoding="utf-8"))["claim"]
    assert [table["id"] for table in tables] == [claim.id for claim in LEDGER]


def test_command(capsys):
    assert command_line.main(["claims", "--verdict", "reproduced", "--paper", "bui2017"]) == 0
    shown = capsys.readouterr().out
    wanted = [claim.id for claim in LEDGER if claim.paper == "bui2017" and claim.verdict == "reproduced"]
    assert [line.split()[1].rstrip(":") for line in shown.split("\n") if line.startswith("reproduced")] == wanted


def test_longer_runs_of_the_classifiers_changed_as_many_verdicts_as_the_pages_say():
    """The verdict by the longer runs is that of now, unless the same number was judged otherwise later."""
    now, changed = {claim.id: claim.verdict for claim in LEDGER}, []
    for entry in rules.read()["rule"]:
        texts = "\n".join(entry["changes"])
        if moved := re.search(r"by those of uci_classification it was [\d.]+, ([a-z ]+) \(", texts):
            later = re.search(r"judged otherwise: was ([a-z ]+), is now", texts[moved.end():])
            verdicts = moved.group(1), later.group(1) if later else now[entry["claim"]]
            if verdicts[0] != verdicts[1]:
                changed.append((entry["status"], *map(claims.VERDICTS.index, verdicts), bool(later)))
    early = sum(status == rules.BEFORE for status, *_ in changed)
    assert (early, len(changed), sum(again for *_, again in changed)) == (6, 7, 4)
    assert all(new < old for _, old, new, _ in changed)
    page = " ".join((ROOT / "chapters" / "claims.md").read_text(encoding="utf-8").split())
    assert ("This changed seven verdicts, all in the paper's favour: six by these ranges, and one by a range written after the "
            "first rows. Then counts, and the smaller of two shares, were given intervals (below), and four of the seven changed "
            "again.") in page


def test_intervals_of_counts_changed_as_many_verdicts_as_the_page_says():
    changes = [text for entry in rules.read()["rule"] for text in entry["changes"]]
    moved = [re.search(r"judged otherwise: was ([a-z ]+), is now ([a-z ]+), by .*Give counts in the ledger an interval", text)
             for text in changes]
    counts = Counter(found.groups() for found in moved if found)
    assert counts == {("not reproduced", "inconclusive"): 9, ("partly", "inconclusive"): 7, ("reproduced", "inconclusive"): 1,
                      ("reproduced", "partly"): 7}
    page = " ".join((ROOT / "chapters" / "claims.md").read_text(encoding="utf-8").split())
    assert (f"changed {counts.total()} verdicts: nine claims that had been *not reproduced*, seven *partly* and one *reproduced* "
            "became *inconclusive*, and seven *reproduced* became *partly*") in page


def test_the_chapter_on_regression_counts_its_verdicts():
    own = [claim.verdict for claim in LEDGER if claim.page == "which-alpha-regression" and claim.measure]
    assert (len(own), own.count("partly"), own.count("not reproduced"), own.count("inconclusive")) == (42, 8, 2, 3)
    text = (claims.FOLDER.parent / "chapters/which-alpha-regression.ipynb").read_text(encoding="utf-8")
    assert "Of forty-two the ledger calls eight *partly* reproduced, three *inconclusive* and two *not reproduced*" in text


def test_where_an_interval_begins_is_said_in_the_chapter():
    classes = (claims.FOLDER.parent / "chapters" / "study-many-classes.ipynb").read_text(encoding="utf-8")
    assert f"for other splits begins at {villacampa_claims.satellite_apart().low:.0f} % of the curves" in classes


def test_no_interval_is_drawn_from_fewer_than_five_rows(monkeypatch):
    """Of three rows one draw in nine is the same row three times; the mean of a few seeds has Student's interval."""
    fewest, draw = {}, significance.bootstrap

    def counted(table, statistic):
        rows = table.groupby(level="data").size().min() if "split" in table.index.names else len(table)
        fewest[claim.id] = min(rows, fewest.get(claim.id, np.inf))
        return draw(table, statistic)

    monkeypatch.setattr(significance, "bootstrap", counted)
    for claim in LEDGER:
        if len(claim.interval or ()) == 2:
            claims.measured(claim)
    assert len(fewest) > 60 and min(fewest.values()) >= 5, {name: rows for name, rows in fewest.items() if rows < 5}


@pytest.fixture(scope="module")
def verdicts_by():
    """A function that judges the claims on real regression by another table of runs: id -> verdict."""
    study, results = regression_claims.STUDY, regression_claims.results
    own = [claim for claim in LEDGER if claim.data == study and claim.measure]

    def judge(runs):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(regression_claims, "results", lambda name: runs if name == study else results(name))
            regression_claims.losses.cache_clear()
            found = {claim.id: claims.measured(claim)[-1] for claim in own}
        regression_claims.losses.cache_clear()
        return found

    return judge


@pytest.fixture(scope="module")
def first_runs():
    return runner.results("uci_regression")


@pytest.fixture(scope="module")
def all_runs():
    return runner.results(regression_claims.STUDY)


@pytest.fixture(scope="module")
def changed(verdicts_by, first_runs, all_runs):
    """The claims whose verdict by our first runs was another one: id -> (then, now)."""
    then, now = verdicts_by(first_runs), verdicts_by(all_runs)
    return {name: (then[name], now[name]) for name in now if then[name] != now[name]}


def test_six_verdicts_are_reproduced_that_our_first_runs_had_left_open(changed):
    assert len(changed) == 6 and {now for _, now in changed.values()} == {"reproduced"}
    assert sum(name.startswith("bui-fig5-") for name in changed) == 5


def test_longer_searches_alone_would_have_changed_two_verdicts(changed, verdicts_by, first_runs, all_runs):
    inputs = ["data", "split", "M", "alpha"]
    same = all_runs.merge(first_runs[inputs], on=inputs)
    assert len(same) == len(first_runs)
    found = verdicts_by(same)
    assert sum(found[name] == "reproduced" for name in changed) == 2


def test_with_our_first_runs_on_the_small_sets_all_six_would_be_reproduced(changed, verdicts_by, first_runs, all_runs):
    small, large = (runs[runs["data"].isin(sets)] for runs, sets in (
        (first_runs, uci_regression.SMALL), (all_runs, uci_regression.LARGE)))
    found = verdicts_by(pd.concat([small, large]))
    assert {found[name] for name in changed} == {"reproduced"}
