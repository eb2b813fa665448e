"""The ledger of claims: no claim without a verdict, no verdict without a recomputation."""

import re
import textwrap
import tomllib

import numpy as np
import pytest
from conftest import ROOT
from scipy.stats import spearmanr

from figures import __main__ as command_line
from figures.experiments import claims, rules, runner, significance, tables

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


def test_the_file_is_toml_that_others_can_read():
    tables = tomllib.loads(claims.FILE.read_text(encoding="utf-8"))["claim"]
    assert [table["id"] for table in tables] == [claim.id for claim in LEDGER]


def test_command(capsys):
    assert command_line.main(["claims", "--verdict", "reproduced", "--paper", "bui2017"]) == 0
    shown = capsys.readouterr().out
    wanted = [claim.id for claim in LEDGER if claim.paper == "bui2017" and claim.verdict == "reproduced"]
    assert [line.split()[1].rstrip(":") for line in shown.split("\n") if line.startswith("reproduced")] == wanted


def test_numbers_that_reasons_give_are_those_of_the_results():
    """What a `why` says of another rule or another comparison, computed as the measures are."""
    from figures.experiments.bui2017 import classification_claims, regression_claims, uci_classification
    from figures.experiments.csato2002 import claims as csato_claims
    from figures.experiments.kuss2005 import landscape
    from figures.experiments.salimbeni2018 import ranks
    from figures.experiments.villacampa2017 import claims as villacampa_claims

    why = {claim.id: claim.why for claim in claims.ledger()}
    pools = [claim for claim in claims.ledger()
             if claim.measure.endswith("regression_claims.wins") and "pool of our runs, our first rule," in claim.why]
    assert len(pools) == 7
    for claim in pools:
        wide = regression_claims.losses(claim.arguments["metric"])
        pooled = 100 * (wide[claim.arguments["first"]] < wide[claim.arguments["second"]]).mean()
        assert re.search(rf"\b{pooled:.0f} %", claim.why), claim.id
    for alpha in (0.8, 1.0):
        mean = regression_claims.toy_overestimation(alpha).mean()
        left = 100 * mean.iloc[-1] / mean[list(regression_claims.INTERMEDIATE)].max()
        assert f"over all 30 sets, which is what the paper shows, {left:.0f} % is left" in why[f"bui-fig3-end-{alpha:g}"]
    known, settings = landscape.errors(runner.results("kuss_landscape"))[["known", "settings"]].astype(int)
    for name in ("ep", "laplace"):
        said = f"{known} of the {settings} settings are compared. At the other {settings - known},"
        assert why[f"kuss-evidence-{name}"].startswith(said)
    against_vfe, against_ep = (classification_claims.wins("error_rate", 0.5, other).value for other in (0.0, 1.0))
    assert f"wins {against_vfe:.0f} % against VFE and {against_ep:.0f} % against EP" in why["bui-fig6-error-half"]
    untied = dict(iter(classification_claims.by_set("error_rate")))["breast_cancer"]
    won = uci_classification.share(untied, 1.0, 0.0)
    assert f"EP wins {won.value:.0f} % of the runs" in why["bui-fig25-error-ep"] and won.low < 50
    by_runs = [(wide[0.5] < wide[1.0]).mean() > 0.5 for _, wide in classification_claims.by_set("nll")]
    assert sum(by_runs) == 5 and "better on five of six, as in the paper" in why["bui-fig26-nll"]
    cells = ranks.ours("classification", "error")
    rank, apart = ranks.ranks(cells, "error"), significance.critical_difference(*reversed(cells.shape))
    named = [f"{rank[method]:.2f} for {method}" for method in ("OrthNat", "Orth", "Decoupled")]
    assert f"{named[0]}, {named[1]} and {named[2]}" in why["sal-tab2-ranks"]
    assert f"if they lie {apart:.2f} apart" in why["sal-tab2-ranks"]
    likely = ranks.ranks(ranks.ours("classification", "log_likelihood"), "log_likelihood")
    assert (likely < likely["OrthNat"]).sum() == 2 and (likely == likely["OrthNat"]).sum() == 2
    nearer = {other: 100 * (1 - villacampa_claims.places_at_boundaries(other=other)) for other in ("ep", "gfitc", "sep")}
    ep, gfitc, sep = nearer.values()
    said = f"EP's by {ep:.0f} % and GFITC's by {gfitc:.0f} %, and farther than SEP's by {-sep:.0f} %"
    assert said in why["vil-fig3-boundary"]
    plane = runner.results("vil_fig3").pivot(index=["seed", "M"], columns="method", values="error_rate")
    assert list(plane[plane.idxmin(axis=1) == "vi"].index) == [(0, 1), (0, 2), (0, 4)]
    assert (plane["vi"] > plane.drop(columns="vi").max(axis=1)).loc[:, 64].all()
    assert why["vil-fig3-error"].startswith("Not for M = 1, 2 and 4, where VI errs least: ")
    assert "For M = 64 VI errs more on all three draws." in why["vil-fig3-error"]
    for task, digits in (("regression", 3), ("classification", 3)):
        mean = ranks.ours(task, "error")[["CoupledNat_400", "OrthNat"]].mean().round(digits)
        ahead, behind = sorted(mean)
        assert f"with {ahead:.3f} against {behind:.3f}" in why[f"sal-time-{task}"]
    rank = ranks.ranks(cells, "error")
    said = [f"{rank[natural]:.1f} against {rank[adam]:.1f}" for natural, adam in list(ranks.NATURAL.items())[:2]]
    assert f"better ({said[0]}) and the coupled one worse ({said[1]})" in why["sal-natural-classification"]
    assert f"({100 * cells['CoupledNat_400'].mean():.1f} against {100 * cells['Coupled_400'].mean():.1f} %)" in why[
        "sal-natural-classification"]
    assert (ranks.ours("regression", "log_likelihood").idxmax(axis=1) == "CoupledNat_400").all()
    theirs = ranks.ranks(ranks.published("regression", "log_likelihood").loc[list(ranks.SETS["regression"])], "log_likelihood")
    assert theirs.idxmin() == "CoupledNat_400"
    sooner = {M: villacampa_claims.satellite_head_start(M, "error_rate") for M in (4, 20, 100)}
    assert all(1.5 < sooner[M] < 3 for M in (4, 20)) and f"in {sooner[100]:.1f} of SEP's time" in why["vil-fig6"]
    first = csato_claims.steady_after(sweep=1, metric="error").value
    assert f"After the first sweep {first:.0f} % of the runs" in why["csa-sweeps"]


def test_numbers_that_reasons_give_for_both_halves_of_the_toy_data():
    from figures.experiments import runner
    from figures.experiments.bui2017 import gap, regression_claims

    why, runs = {claim.id: claim.why for claim in LEDGER}, runner.results("bui_gap")
    at_200 = {alpha: runs[(runs["M"] == 200) & (runs["alpha"] == alpha)] for alpha in gap.ALPHAS}
    ratios, differences = ({alpha: part(rows).mean() for alpha, rows in at_200.items()} for part in (gap.ratios, gap.differences))
    full = regression_claims.smse_over_training(500).value, regression_claims.smll_above_training(500).value
    said = f"is {ratios[0.8]:.2f} times the training error for 0.8 and {ratios[1.0]:.2f} times for EP, and {full[0]:.2f} times"
    assert said in why["bui-gap-smse"]
    assert f"{differences[0.8]:.2f} nats for 0.8 and {differences[1.0]:.2f} for EP, while the full GP has {full[1]:.2f}" in (
        why["bui-gap-smll"])


def curves_with_M(curves):
    """How many of the curves of `mean_curves` fall with M, and how many rise."""
    size = curves.index.get_level_values("M")
    signs = [np.sign(spearmanr(size[curves.index.get_level_values("data") == data], curve).statistic)
             for data, part in curves.groupby(level="data") for _, curve in part.items() if np.ptp(curve) > 0]
    return signs.count(-1), signs.count(1)


def test_numbers_that_reasons_give_for_classification():
    from figures.experiments.bui2017 import classification_claims

    why = {claim.id: claim.why for claim in LEDGER}
    wide = classification_claims.losses("error_rate")
    ties = {other: 100 * (wide[0.5] == wide[other]).mean() for other in (0.0, 1.0)}
    assert (f"Of the pairs with EP {ties[1.0]:.0f} % are ties, and {ties[0.0]:.0f} % of those with VFE"
            in why["bui-fig6-error-half"])
    error, nll = (classification_claims.ranks(metric) for metric in ("error_rate", "nll"))
    first, second = (classification_claims.in_order_of_rank(metric)[:2] for metric in ("error_rate", "nll"))
    assert first == [0.5, 0.8] and second == [0.8, 0.5]
    assert (f"0.5 is first, {error[0.8].value - error[0.5].value:.2f} of a rank before 0.8, and in the negative log-likelihood "
            f"0.8, {nll[0.5].value - nll[0.8].value:.2f} of a rank before 0.5;") in why["bui-fig7-advice"]
    runs = classification_claims.results()
    converged = runs[runs["data"] != "sonar"].groupby("M")["converged"].mean()
    for name, metric in (("bui-fig28-M", "error_rate"), ("bui-fig30-M", "nll")):
        fall, rise = curves_with_M(classification_claims.mean_curves(metric).drop("sonar"))
        assert f"{fall} of 40 curves fall and {rise} rise." in why[name]
        assert f"{100 * converged[10]:.0f} % converged at M = 10, {100 * converged[100]:.0f} % at 100." in why[name]
    apart = classification_claims.farthest_from_even("nll", 0.0, [0.5, 1.0])
    assert f"from {apart.low:.0f} to {apart.high:.0f} points" in why["bui-fig6-nll-others"]
    assert f"it begins at {classification_claims.wins('nll', 0.5, 1.0).low:.0f} %" in why["bui-fig6-nll-half"]


def test_longer_runs_of_the_classifiers_changed_as_many_verdicts_as_the_pages_say():
    now, changed = {claim.id: claim.verdict for claim in LEDGER}, []
    for entry in rules.read()["rule"]:
        moved = [re.search(r"by those of uci_classification it was [\d.]+, ([a-z ]+) \(", text) for text in entry["changes"]]
        if entry["status"] == rules.BEFORE and any(moved) and "judged otherwise" not in entry["changes"][-1]:
            changed.append((next(filter(None, moved)).group(1), now[entry["claim"]]))
    changed = [(old, new) for old, new in changed if old != new]
    assert len(changed) == 6 and all(claims.VERDICTS.index(new) < claims.VERDICTS.index(old) for old, new in changed)


def test_numbers_that_reasons_give_for_the_mended_rules():
    from figures.experiments.salimbeni2018 import fig2, ranks
    from figures.experiments.villacampa2017 import claims as villacampa_claims

    why = {claim.id: claim.why for claim in LEDGER}
    touching = villacampa_claims.touching()
    assert why["vil-fig3-overlap"].startswith(
        f"With M = 64, of 576 pseudo-inputs in three draws {touching['ep']} of EP touch another, {touching['gfitc']} of GFITC, "
        f"{touching['sep']} of SEP, and none of VI and at the start.")
    assert touching["vi"] == touching["start"] == 0
    most = villacampa_claims.touching(256)
    assert ("{ep}, {gfitc}, {sep} and {vi} of 768, and {start} at the start".format_map(most)) in why["vil-fig3-overlap"]
    left = {run: 100 * share[-1] for run, share in fig2.shares(runner.results("salimbeni_fig2")).items()}
    by_adam = [left["kin40k", basis] for basis in fig2.LOOKS if not basis.endswith("Nat")]
    assert min(by_adam) == left["kin40k", "Orth"] > 1
    for said in (f"{left['kin40k', 'Decoupled']:.0f} % of the gap is left", f"Orth has {left['kin40k', 'Orth']:.1f} %",
                 f"Decoupled still has {left['ringnorm', 'Decoupled']:.1f} % of the gap"):
        assert said in why["sal-fig2-decoupled"]
    errors = ranks.ours("classification", "error")
    medians = 100 * errors.median()
    assert (f"{medians['OrthNat']:.1f} and {medians['CoupledNat_400']:.1f} % against {medians['Orth']:.1f} %"
            in why["sal-tab2-median"])
    likely = ranks.ranks(ranks.ours("classification", "log_likelihood"), "log_likelihood")
    assert f"{likely['Orth']:.2f} against {likely['OrthNat']:.2f}" in why["sal-tab6-rank"]
    assert likely["Orth"] == likely["Coupled_400"] and likely["CoupledNat_400"] == likely["OrthNat"]
    assert f"{significance.critical_difference(*reversed(errors.shape)):.2f} apart" in why["sal-tab6-rank"]
    ours = ranks.ours("regression", "error")
    theirs = ranks.published("regression", "error").loc[ours.index]
    assert (len(ours), (theirs["OrthNat"] < theirs["CoupledNat_400"]).sum()) == (7, 3)
    assert (ours["OrthNat"] < ours["CoupledNat_400"]).sum() == 0
    assert (len(errors), (errors["OrthNat"] < errors["CoupledNat_400"]).sum()) == (8, 6)


def test_numbers_that_are_given_for_the_times_of_many_classes():
    from figures.experiments.villacampa2017 import cells

    why, times = {claim.id: claim.why for claim in LEDGER}, cells.times()
    slower, longer = times["gfitc"] / times["sep"], 100 * (times["sep"] / times["ep"] - 1)
    assert f"The ratio falls with M, from {slower.max():.0f} to {slower.min():.0f}." in why["vil-speed"]
    assert f"SEP takes {longer.min():.0f} to {longer.max():.0f} % longer." in why["vil-fastest"]


def test_the_chapter_on_regression_counts_its_verdicts():
    own = [claim.verdict for claim in LEDGER if claim.page == "which-alpha-regression" and claim.measure]
    assert (len(own), own.count("partly"), own.count("not reproduced"), own.count("inconclusive")) == (42, 9, 3, 1)
    text = (claims.FOLDER.parent / "chapters/which-alpha-regression.ipynb").read_text(encoding="utf-8")
    assert "The ledger calls nine of forty-two *partly* reproduced" in text
