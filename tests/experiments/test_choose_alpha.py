"""The study of ways to choose the power: what a row holds, and what the summaries make of tables that are known."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from figures.experiments import runner
from figures.experiments.book import choose_alpha, choose_alpha_unseen
from figures.experiments.book import choose_alpha_claims as claims
from pepcore import training

ALPHAS, ONE = np.array(choose_alpha.ALPHAS), choose_alpha.SEARCHES[0]


def table(sets=("boston", "yacht", "pima", "iris"), splits=3, sizes=(20, 50), shift=0.0, seed=0):
    """Rows whose test loss is least at 0.75, by (alpha − 0.75)²; the estimates say what the test says, but for optimism."""
    rng, rows = np.random.default_rng(seed), []
    for data in sets:
        for split in range(splits):
            for M in sizes:
                level = rng.normal()
                for alpha in ALPHAS:
                    loss = level + (alpha - 0.75) ** 2
                    rows.append({"data": data, "split": split, "M": M, "search": ONE, "alpha": alpha, "nll": loss,
                                 "point": np.exp(loss - level) / 10, "train_nll": loss - alpha, "log_evidence": alpha,
                                 "loo_nll": loss - 0.2 * alpha, "held_out_nll": loss + 0.1, "cv_nll": loss + shift * alpha,
                                 "loo_point": 1 - alpha, "held_out_point": alpha, "cv_point": abs(alpha - 0.9),
                                 "fit_seconds": 1.0 + alpha, "loo_seconds": 0.5, "held_out_seconds": 2.0, "cv_seconds": 10.0})
                if M == 20:
                    for number, control in enumerate(claims.CONTROLS):
                        rows.append({"data": data, "split": split, "M": M, "search": control, "alpha": 0.5,
                                     "nll": level + 0.01 * number, "point": 0.1, "fit_seconds": 6.0})
    return pd.DataFrame(rows)


def test_every_way_names_its_power():
    chosen = claims.choices(table())
    expected = {"always 0": 0.0, "always 0.5": 0.5, "always 0.75": 0.75, "always 0.9": 0.9, "always 1": 1.0, "evidence": 1.0,
                "leave-one-out": 0.9, claims.CAUTIOUS: 0.9, "held out": 0.75, "cross-validation": 0.75}
    assert (chosen.drop_duplicates().iloc[0].to_dict(), len(chosen.drop_duplicates())) == (expected, 1)
    other = claims.choices(table(), by="point").iloc[0]
    assert (other["leave-one-out"], other[claims.CAUTIOUS], other["held out"], other["cross-validation"]) == (1.0, 0.9, 0.0, 0.9)


def test_regret_is_the_loss_above_the_best_power():
    found = claims.mean_over_sets(claims.regret(table(), "log density"))["mean"]
    for name, alpha in claims.CONSTANTS.items():
        assert found[name] == pytest.approx((alpha - 0.75) ** 2)
    assert found["cross-validation"] == pytest.approx(0.0, abs=1e-12)
    assert found[claims.CONTROLS[0]] == pytest.approx(0.0, abs=1e-12)      # the controls stand at the middle M alone
    assert found[claims.CONTROLS[1]] == pytest.approx(0.01)


def test_losses_come_in_their_units_and_on_their_sets():
    squared, rate = (claims.regret(table(), metric) for metric in ("squared error", "error rate"))
    assert set(squared.index.get_level_values("data")) == {"boston", "yacht", "iris"}
    assert set(rate.index.get_level_values("data")) == {"pima"}
    assert squared["always 0.5"].to_numpy() == pytest.approx(100 * 0.0625)                     # per cent, by the logarithm
    assert rate["always 0.5"].to_numpy() == pytest.approx(10 * (np.exp(0.0625) - 1))           # percentage points


@pytest.mark.parametrize(("low", "high", "said"), [
    (-0.005, 0.005, "no difference that matters"), (-0.009, -0.001, "no difference that matters"), (-0.2, -0.1, "better"),
    (0.02, 0.03, "worse"), (-0.2, 0.1, "inconclusive"), (-0.02, 0.0, "inconclusive"), (0.0, 0.02, "inconclusive")])
def test_verdicts(low, high, said):
    assert claims.verdict(low, high, 0.01) == said


def test_comparison_with_one_half():
    found = claims.against(table(), "log density")
    assert claims.HALF not in found.index
    assert found.loc["cross-validation", ["mean", "verdict", "wins", "ties", "losses"]].tolist() == [
        pytest.approx(-0.0625), "better", 4, 0, 0]
    assert found.loc["always 0", ["verdict", "wins", "losses"]].tolist() == ["worse", 0, 4]
    assert found.loc["evidence", ["mean", "verdict", "ties"]].tolist() == [
        pytest.approx(0.0, abs=1e-12), "no difference that matters", 4]


def test_comparison_with_a_control_is_at_the_middle_size():
    found = claims.against(table(), "log density", reference=claims.CONTROLS[1])
    assert found.loc["cross-validation", "mean"] == pytest.approx(-0.01)
    other = table()
    other.loc[(other["M"] == 50) & (other["alpha"] == 0.75), "nll"] += 100.0
    assert claims.against(other, "log density", reference=claims.CONTROLS[1]).loc["always 0.75", "mean"] == pytest.approx(-0.01)


def test_a_set_has_one_vote_however_many_rows_it_has():
    rows = table(sets=("boston", "yacht"))
    rows.loc[(rows["data"] == "boston") & (rows["alpha"] == 0.5), "nll"] += 1.0
    rows = rows[(rows["data"] == "boston") | (rows["split"] == 0)]
    assert claims.mean_over_sets(claims.regret(rows, "log density"))["mean"]["always 0.5"] == pytest.approx(0.0625 + 0.5)


def test_standard_errors_are_over_sets():
    rows = table(sets=("boston", "yacht", "iris"))
    for data, more in (("boston", 0.3), ("yacht", 0.6)):
        rows.loc[(rows["data"] == data) & (rows["alpha"] == 1.0), "nll"] += more
    found = claims.mean_over_sets(claims.regret(rows, "log density")).loc["always 1"]
    assert found["mean"] == pytest.approx(0.0625 + 0.3)
    assert found["se"] == pytest.approx(0.3 / np.sqrt(3))
    assert found["high"] - found["mean"] == pytest.approx(4.302653 * 0.3 / np.sqrt(3), rel=1e-6)   # t with two degrees


def test_costs_in_fits():
    found, fit = claims.by_set(claims.costs(table())).iloc[0], 1 + ALPHAS.mean()
    expected = {"always 0": 1 / fit, "always 0.5": 1.5 / fit, "evidence": 6.0, "leave-one-out": 6 + 3 / fit,
                claims.CAUTIOUS: (6 * fit - 2 + 2.5) / fit, "held out": (12 + 1.75) / fit, "cross-validation": (60 + 1.75) / fit,
                claims.CONTROLS[0]: 6 / fit}
    assert found[list(expected)].to_dict() == pytest.approx(expected)


def test_optimism_and_how_often():
    found = claims.mean_over_sets(claims.optimism(table()))["mean"]
    np.testing.assert_allclose(found, -0.2 * ALPHAS, atol=1e-12)
    np.testing.assert_allclose(claims.mean_over_sets(claims.optimism(table(), "train"))["mean"], -ALPHAS, atol=1e-12)
    shares = claims.frequencies(table())
    np.testing.assert_allclose(shares.sum(axis=1), 100)
    assert shares.loc["leave-one-out", 0.9] == 100


def test_groups_without_all_powers_are_left_out_and_counted():
    rows = table()
    rows = rows.drop(rows.index[(rows["data"] == "iris") & (rows["split"] == 1) & (rows["M"] == 50) & (rows["alpha"] == 0.25)])
    assert claims.incomplete(rows) == [("iris", 1, 50)]
    assert ("iris", 1, 50) not in claims.choices(rows).index
    assert ("iris", 1, 50) not in claims.regret(rows, "log density").index
    assert len(claims.choices(rows)) == 23


def test_an_estimate_that_failed_is_not_chosen():
    rows = table()
    rows.loc[rows["alpha"] == 0.9, "loo_nll"] = np.nan
    assert set(claims.choices(rows)["leave-one-out"]) == {0.75}


def test_the_summary_has_every_way_and_the_drawings_work():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = claims.summary(table(seed=3, shift=0.3), "log density")
        assert set(found.index) == {*claims.STRATEGIES, *claims.CONTROLS}
        assert np.isfinite(found[["regret", "se", "fits"]].to_numpy()).all()
        left, middle, right = Figure().subplots(1, 3)
        claims.draw_optimism(left, middle, table())
        claims.draw_regret(right, table())
    assert len(middle.get_legend_handles_labels()[1]) == 4 and len(right.get_yticks()) == len(found)


def test_the_narrow_table_says_what_the_wide_one_says():
    summary = claims.summary(table(), "log density")
    shown = claims.printed(summary)
    assert shown.loc["always 0", "95 % interval"] == "0.500 to 0.500"
    assert shown.loc["always 0", ["verdict", "won, tied, lost"]].tolist() == ["worse", "0, 0, 4"]
    assert shown.loc[claims.HALF, ["95 % interval", "verdict", "won, tied, lost"]].isna().all()
    assert (shown["fits"] == summary["fits"]).all()


# --- the rows ---------------------------------------------------------------------------------------------------------


def test_the_grid_begins_with_every_set_and_holds_all():
    runs = runner.load("choose_alpha").runs()
    first = runs[:len(choose_alpha.DATA) * (len(ALPHAS) + 2)]
    assert {run["data"] for run in first} == set(choose_alpha.DATA) and len(choose_alpha.DATA) == 18
    assert {(run["split"], run["M"]) for run in first} == {(0, 20)}
    assert len(runs) == 18 * 10 * (3 * len(ALPHAS) + 2)


def test_a_row_holds_what_the_ways_look_at():
    inputs = {"data": "wine", "split": 1, "M": 4, "search": ONE, "alpha": 0.5}
    found = choose_alpha.compute(**inputs, evaluations=15)
    assert set(found) == set(choose_alpha.OUTPUTS)
    X, y, X_test, y_test, _ = choose_alpha.problem("wine", 1)
    model = training.fit(None, X, y, M=4, alpha=0.5, max_evaluations=15, seed=1)
    mean, variance = model.predict_y(X_test)
    assert found["point"] == pytest.approx(np.mean((y_test - mean) ** 2))
    density = -0.5 * (np.log(2 * np.pi * variance) + (y_test - mean) ** 2 / variance)
    assert found["nll"] == pytest.approx(-density.mean())
    assert found["loo_nll"] == pytest.approx(-model.leave_one_out(X, y).log_density.mean())
    order = np.random.default_rng(1).permutation(len(y))
    tenth, others = order[:round(0.1 * len(y))], np.sort(order[round(0.1 * len(y)):])
    refit = training.fit(None, X[others], y[others], M=4, alpha=0.5, max_evaluations=15, seed=1)
    assert found["held_out_nll"] == pytest.approx(-refit.log_density(X[tenth], y[tenth]).mean())
    assert found["cv_nll"] > found["train_nll"]
    assert 6 * 15 <= found["refit_evaluations"] <= 6 * 18


def test_a_control_holds_its_own_fit_alone():
    found = choose_alpha.compute(data="wine", split=0, M=4, search=choose_alpha.SEARCHES[1], alpha=0.5, evaluations=5)
    assert 6 * 5 <= found["evaluations"] <= 6 * 8
    assert np.isnan(found["cv_nll"]) and np.isnan(found["loo_nll"]) and np.isfinite(found["nll"])
    longer = choose_alpha.compute(data="wine", split=0, M=4, search=choose_alpha.SEARCHES[2], alpha=0.5, evaluations=5)
    assert 30 <= longer["evaluations"] <= 33


def test_a_row_of_labels(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1.0, -1.0)
    monkeypatch.setattr(choose_alpha, "problem", lambda *_: (X[:60], y[:60], X[60:], y[60:], "labels"))
    found = choose_alpha.compute(data="pima", split=0, M=5, search=ONE, alpha=0.5, evaluations=10)
    assert 0 <= found["point"] < 0.5 and 0 < found["train_nll"] < found["loo_nll"] < np.log(2)
    assert np.isnan(found["noise"])
    assert 60 * found["cv_point"] == pytest.approx(round(60 * found["cv_point"]))
    assert choose_alpha.point_loss("labels", np.array([1.0, -1.0, 1.0, 1.0]), np.array([0.2, 0.1, -3.0, 2.0])) == 0.5


def unseen(chosen, half, best=0.0):
    """Losses of two splits of one set; what is not named has the loss 1."""
    rows = []
    for split in range(2):
        losses = dict.fromkeys(choose_alpha_unseen.POWERS, 1.0) | {"0.75": best, "0.5": half, "chosen": chosen[split]}
        rows += [{"data": "wine", "split": split, "power": power, "nll": loss, "fit_seconds": 9.0 if power == "chosen" else 1.0}
                 for power, loss in losses.items()]
    return pd.DataFrame(rows)


def test_regret_on_unseen_sets_is_beside_that_of_one_half():
    found = choose_alpha_unseen.regrets(unseen(chosen=[0.1, 0.3], half=0.5))["wine"]
    assert found == pytest.approx({"splits": 2, "chosen": 0.2, "one half": 0.5, "difference": -0.3, "error": 0.1, "fits": 9.0})


def test_a_split_that_is_not_complete_is_left_out():
    rows = unseen(chosen=[0.1, 0.3], half=0.5)
    assert choose_alpha_unseen.regrets(rows.iloc[:-1])["wine"]["splits"] == 1


def test_a_run_on_unseen_data_is_the_estimator_alone(monkeypatch):
    monkeypatch.setattr(choose_alpha_unseen, "M", 3)
    found = choose_alpha_unseen.compute("wine", 0, "0.5")
    assert set(found) == set(choose_alpha_unseen.OUTPUTS)
    assert found["alpha"] == 0.5
    assert 0 < found["nll"] < np.log(3)


def test_the_unseen_sets_are_a_study_that_can_run():
    assert len(runner.load("choose_alpha_unseen").runs()) == 3 * 10 * 6


def test_rows_of_the_unseen_sets_come_out_again():
    results = runner.results("choose_alpha_unseen")
    for power in ("0", "0.5"):
        kept = results.query("data == 'diabetes' and split == 3 and power == @power").iloc[0]
        found = choose_alpha_unseen.compute("diabetes", 3, power)
        assert found["nll"] == pytest.approx(kept["nll"], abs=0.01)
        assert found["score"] == pytest.approx(kept["score"], abs=0.01)


def test_the_unseen_sets_are_complete_and_the_choice_is_no_better_there():
    found = choose_alpha_unseen.regrets(runner.results("choose_alpha_unseen"))
    assert {data: row["splits"] for data, row in found.items()} == dict.fromkeys(choose_alpha_unseen.DATA, 10)
    assert all(abs(row["difference"]) < 2 * row["error"] for row in found.values())
    assert all(8.5 < row["fits"] < 15 for row in found.values())


def test_the_tumours_of_value_zero_are_as_many_as_the_chapter_says():
    X, _, X_rest, _, _ = choose_alpha.problem("nuclei", 0)
    assert ((X == X.min()).sum(), (X_rest == X.min()).sum()) == (6, 7)
