"""The studies of decoupled bases: their grids, and one small run of each."""

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures.experiments import runner, significance, tables, verification
from figures.experiments.salimbeni2018 import (
    ard as salimbeni_ard,
)
from figures.experiments.salimbeni2018 import (
    fig2,
    landscape,
    magic,
    magic_splits,
    problems,
    waves,
)
from figures.experiments.salimbeni2018 import (
    ranks as salimbeni_ranks,
)
from figures.experiments.salimbeni2018 import (
    tables as salimbeni_tables,
)
from pepcore import datasets, decoupled
from pepcore.decoupled import bases as decoupled_bases
from pepcore.decoupled import natural as decoupled_natural


def test_grids_name_every_basis_and_method():
    assert {run["basis"] for run in fig2.grid()} == set(problems.BASES) - {"OrthNatWeights"}
    methods = salimbeni_tables.METHODS | salimbeni_tables.IN_WEIGHTS
    assert {run["method"] for run in salimbeni_tables.grid()} == set(methods)
    assert {name for name, _ in methods.values()} == set(problems.BASES)


@pytest.mark.parametrize("basis", ["CoupledNat", "OrthNat", "Decoupled"])
def test_a_curve_climbs_to_the_optimum_and_not_over_it(basis):
    checkpoints = (0, 5, 20)
    run = fig2.compute("kin8nm", basis, points=20, rows=200, checkpoints=checkpoints)
    bounds = [run[f"bound_{number}"] for number in checkpoints]
    assert bounds[0] < bounds[1] < bounds[2] < run["bound_optimum"]
    assert 0 <= run["seconds_0"] <= run["seconds_5"] <= run["seconds_20"]
    assert all(np.isfinite(value) for value in run.values())


def test_the_waves_are_those_of_the_public_set():
    """Mean and variance of every input in every class, where the public set has one draw of the same rule."""
    theirs, ours = datasets.load("waveform"), waves.draw(rows=50_000)
    classes = {label: theirs.X[theirs.y == label] for label in range(3)}
    for label, X in classes.items():
        of_class = ours.X[ours.y == label, :21]
        off = (X.mean(axis=0) - of_class.mean(axis=0)) / np.sqrt(X.var(axis=0) * (1 / len(X) + 1 / len(of_class)))
        assert np.abs(off).max() < 4.5, label
        assert X.var(axis=0) == pytest.approx(of_class.var(axis=0), rel=0.2)


def test_the_inputs_of_noise_say_nothing_of_the_class():
    drawn = waves.draw()
    assert drawn.X.shape == (5000, 40) and set(drawn.y) == {0.0, 1.0, 2.0}
    for label in range(3):
        noise = drawn.X[drawn.y == label, 21:]
        assert np.abs(noise.mean(axis=0)).max() < 4.5 / np.sqrt(len(noise))
        assert noise.var(axis=0) == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize("name", ["kin8nm", "pima", "waveform", "satellite", "waveform-noise"])
def test_nine_tenths_of_the_rows_are_for_training(name):
    task = problems.problem(name, 0)
    assert len(task.X) == round(0.9 * (len(task.X) + len(task.X_test)))


@pytest.mark.parametrize("study", ["salimbeni_tables", "salimbeni_ard"])
def test_the_cheapest_row_of_the_tables_comes_out_again(study):
    """Ten thousand steps, some minutes: the rows say nothing of what was there before the last step."""
    table = runner.load(study)
    cheapest = min(tables.read_rows(table), key=lambda row: float(row["seconds"]))
    inputs = next(run for run in table.runs() if runner.key(run) == tables.row_key(table, cheapest))
    datasets.load(inputs["data"])       # without it the test is left out
    found = verification.difference(table, cheapest, runner.Run(table.module.__name__)(inputs))
    assert found.largest < 1e-6, found


def test_inputs_share_a_lengthscale_unless_each_is_to_have_its_own():
    shared, own = (problems.problem("kin8nm", 0, ard=ard).kernel for ard in (False, True))
    assert [np.shape(part.lengthscales) for part in (*shared.parts, *own.parts)] == [(), (), (8,), (8,)]
    X = np.random.default_rng(0).normal(size=(5, 8))
    np.testing.assert_array_equal(shared(X), own(X))


def test_the_easy_split_of_magic_is_that_on_which_the_support_vector_machine_errs_least():
    assert runner.results("magic_splits").set_index("split")["error_rate"].idxmin() == magic.EASY


def test_the_support_vector_machine_errs_on_the_easy_split_as_committed():
    errors = runner.results("magic_splits").set_index("split")["error_rate"]
    assert magic_splits.compute(magic.EASY)["error_rate"] == pytest.approx(errors.min(), abs=2 / 1902)


def test_the_number_of_a_row_is_one_input_more():
    plain, numbered = (problems.problem("sonar", 0, numbered=numbered) for numbered in (False, True))
    np.testing.assert_array_equal(numbered.X[:, 1:], plain.X)
    first = numbered.X[:, 0]
    assert np.all(np.diff(first) > 0) and np.corrcoef(first, plain.y)[0, 1] > 0.8  # the rows are sorted by class


def test_the_study_of_lengthscales_differs_from_the_tables_in_them_only(monkeypatch):
    tasks, calls = [], []
    monkeypatch.setattr(salimbeni_ard, "problem", lambda *args, **options: tasks.append((args, options)) or "each")
    monkeypatch.setattr(salimbeni_tables, "problem", lambda *args, **options: tasks.append((args, options)) or "shared")
    monkeypatch.setattr(salimbeni_tables, "run", lambda task, *args: calls.append((task, args[:4])))
    for study in (salimbeni_ard, salimbeni_tables):
        study.compute("pol", "Orth", 0)
    assert tasks == [(("pol", 0), {"ard": True}), (("pol", 0), {})]
    assert calls == [(task, ("Orth", 300, 0, salimbeni_tables.STEPS)) for task in ("each", "shared")]


@pytest.mark.parametrize("name", ["salimbeni_tables", "salimbeni_ard"])
def test_while_the_kernel_moves_weights_fall_behind_a_basis_within_theirs_and_values_do_not(name):
    runs = runner.results(name).query("data == 'kin40k'").set_index("method")
    within = runs.loc["CoupledNat_300"]
    assert runs.loc["OrthNatWeights", "bound"] < within["bound"] < runs.loc["OrthNat", "bound"]
    assert runs.loc["OrthNatWeights", "rmse"] > within["rmse"] > runs.loc["OrthNat", "rmse"]


def race(**levels):
    """Rows of the study in which each basis has a bound of −1 at first and of `levels[basis]` from 1000 iterations on."""
    rows = []
    for data in fig2.DATA:
        for basis in problems.BASES:
            level = levels.get(basis, 0.0)
            bounds = {f"bound_{number}": level if number >= 1000 else -1.0 for number in fig2.CHECKPOINTS}
            rows.append({"data": data, "basis": basis, "bound_optimum": 1.0 if data == "kin40k" else np.nan} | bounds)
    return pd.DataFrame(rows)


def test_the_gap_is_to_the_optimum_or_to_the_best_that_was_reached():
    left = fig2.shares(race(Orth=-0.5, Coupled=0.5))
    assert left["kin40k", "Orth"][0] == 1
    assert left["kin40k", "Orth"][-1] == 0.75
    assert left["ringnorm", "Orth"][-1] == 0.5
    assert left["ringnorm", "OrthNat"][-1] == 0  # the best of its own kind
    assert left["ringnorm", "Coupled"][-1] == 0
    assert left["ringnorm", "CoupledNat"][-1] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("share", "expected"), [
    (lambda n: np.minimum(1, 5 / n), 500), (lambda n: 1 / n, 100), (lambda n: 0 * n + 0.001, 10), (lambda n: 0 * n + 1, np.inf),
])
def test_arrivals_lie_on_the_line_between_checkpoints(share, expected):
    assert fig2.arrival(share(np.array(fig2.CHECKPOINTS[1:], float))) == pytest.approx(expected)


def test_the_head_start_is_that_of_the_worst_pair(monkeypatch):
    results = race(Coupled=0.9, CoupledNat=0.999, Orth=0.9, OrthNat=0.999).fillna(1.0)
    far = {f"bound_{number}": 0.9 for number in fig2.LONGER}
    longer = pd.DataFrame([{"basis": "Orth", "bound_0": -1.0, "bound_optimum": 1.0} | far])
    monkeypatch.setattr(fig2.runner, "results", {"salimbeni_fig2": results, "salimbeni_fig2_long": longer}.get)
    # the plain ones never arrive and count as 20 000; the others do on the way from all to a 2000th between 700 and 1000
    arrival = 700 * (1000 / 700) ** (np.log(0.01) / np.log(0.0005))
    assert fig2.head_start() == pytest.approx(20_000 / arrival)
    assert fig2.decoupled_gap() == pytest.approx(50)
    assert fig2.sets_where_decoupled_is_late() == 2
    results.loc[(results["data"] == "kin40k") & (results["basis"] == "OrthNat"), "bound_1000"] = 0.9
    slower = 1000 * 1.5 ** (np.log(0.05 / 0.01) / np.log(0.05 / 0.0005))
    assert fig2.head_start() == pytest.approx(20_000 / arrival)  # Orth on kin40k counts as 30 000
    assert 20_000 / slower < 20_000 / arrival < 30_000 / slower
    longer[["bound_25000", "bound_30000"]] = 1 - 2 * 0.0005  # and if the longer run arrives, it counts as it does
    assert fig2.head_start() == pytest.approx(20_000 * 1.25 ** (np.log(5) / np.log(100)) / slower)
    late = [f"bound_{number}" for number in fig2.CHECKPOINTS[1:]]
    results.loc[results["basis"] == "OrthNat", late] = 0.0
    assert fig2.head_start() == 0


@pytest.mark.parametrize("name", ["salimbeni_fig2", "salimbeni_fig2_long", "salimbeni_landscape", "salimbeni_ard",
                                  "salimbeni_magic", "salimbeni_tables", "magic_splits"])
def test_studies_are_complete(name):
    study = runner.load(name)
    assert not hasattr(study.module, "UNFINISHED")
    rows = runner.read_rows(study)
    assert len(rows) == len(study.runs())
    assert not any(row["error"] for row in rows)


def test_the_longer_curve_begins_as_the_shorter_one_does():
    short = runner.results("salimbeni_fig2").set_index(["data", "basis"])
    for _, longer in runner.results("salimbeni_fig2_long").iterrows():
        for number in (1000, 10_000, 20_000):
            same = short.loc[("kin40k", longer["basis"]), f"bound_{number}"]
            assert longer[f"bound_{number}"] == pytest.approx(same, rel=1e-6)


@pytest.mark.parametrize("basis", landscape.BASES)
def test_the_landscape_has_the_optimum_of_the_study_and_descents_fall_towards_it(basis):
    run = landscape.compute("kin8nm", 200, basis, points=10)
    left = [run[f"left_{steps}"] for steps in landscape.STEPS]
    assert 1 > left[0] > left[1] > left[2] >= left[3] >= 0
    task = problems.problem("kin8nm", 0, 200)
    bases = decoupled_bases.Bases.build(task.kernel, *task.points(10, 10, seed=0))
    best = decoupled_natural.optimum(bases, task.X, task.y, task.likelihood.noise)
    weights = np.linalg.solve(bases.L.T, best.process(bases).w)
    K_beta = bases.L @ bases.L.T
    beside = {"orthogonal-weights": np.linalg.solve(K_beta, best.m_beta), "orthogonal": best.m_beta, "hybrid": K_beta @ weights,
              "decoupled": weights}
    assert run["largest"] == pytest.approx(np.abs(np.append(best.a_gamma, beside[basis])).max(), rel=1e-5)


@pytest.mark.parametrize("name", ["pima", "waveform"])
def test_a_run_of_the_tables_learns(name, monkeypatch):
    monkeypatch.setattr(salimbeni_tables, "GAMMA", 30)
    monkeypatch.setattr(salimbeni_tables, "COLUMNS", 10)
    monkeypatch.setattr(salimbeni_tables, "METHODS", {"OrthNat": ("OrthNat", 20)})
    few, more = (salimbeni_tables.compute(name, "OrthNat", 0, steps=steps) for steps in (1, 60))
    assert set(few) == set(salimbeni_tables.OUTPUTS)
    assert (few["steps"], more["steps"]) == (1, 60)
    assert few["bound"] < more["bound"]
    assert few["log_likelihood"] < more["log_likelihood"]


def test_runs_on_five_sets_of_many_classes_end_with_their_time_and_others_do_not(monkeypatch):
    monkeypatch.setattr(salimbeni_tables, "GAMMA", 10)
    monkeypatch.setattr(salimbeni_tables, "COLUMNS", 5)
    monkeypatch.setattr(salimbeni_tables, "METHODS", {"Orth": ("Orth", 5)})
    assert salimbeni_tables.compute("waveform", "Orth", 0, steps=3, minutes=0)["steps"] == 1
    assert salimbeni_tables.compute("pima", "Orth", 0, steps=3, minutes=0)["steps"] == 3
    assert salimbeni_tables.compute("waveform-noise", "Orth", 0, steps=3, minutes=0)["steps"] == 3


def test_a_run_that_a_clock_ended_comes_out_again_without_a_clock(monkeypatch):
    monkeypatch.setattr(salimbeni_tables, "GAMMA", 10)
    monkeypatch.setattr(salimbeni_tables, "COLUMNS", 5)
    monkeypatch.setattr(salimbeni_tables, "METHODS", {"OrthNat": ("OrthNat", 5)})
    with monkeypatch.context() as moving:
        moving.setattr(salimbeni_tables, "time", SimpleNamespace(process_time=itertools.count().__next__))     # seconds
        ended = salimbeni_tables.compute("waveform", "OrthNat", 0, minutes=3 / 60)
    assert ended["steps"] == 4
    assert salimbeni_tables.compute("waveform", "OrthNat", 0, **salimbeni_tables.again(ended)) == ended


def test_a_run_that_somebody_interrupts_is_no_result(monkeypatch):
    monkeypatch.setattr(salimbeni_tables, "METHODS", {"Orth": ("Orth", 5)})

    original = decoupled.infer

    def infer(*args, callback, **options):
        def interrupted(record):
            raise KeyboardInterrupt

        return original(*args, callback=interrupted, **options)

    monkeypatch.setattr(salimbeni_tables.decoupled, "infer", infer)
    with pytest.raises(KeyboardInterrupt):
        salimbeni_tables.compute("waveform", "Orth", 0, steps=3)


def test_classes_have_the_methods_of_the_published_table():
    grid = salimbeni_tables.grid()
    for sets in (salimbeni_tables.BINARY, salimbeni_tables.MANY):
        methods = {run["method"] for run in grid if run["data"] in sets}
        assert methods == {"Coupled_400", "CoupledNat_400", "OrthNat", "Orth", "Hybrid", "Decoupled"}
    assert len(grid) == 7 * 8 + 10 * 6 + 2


def cells(task, **orders):
    """Results in which the methods' errors are 1, 2, ... in the order of the table, but for those given."""
    errors = {method: 1.0 + place for place, method in enumerate(salimbeni_ranks.COMPARED[task])} | orders
    return pd.DataFrame([{"data": data, "method": method, "rmse": error, "mae": error, "log_likelihood": -error}
                         for data in salimbeni_ranks.SETS[task] for method, error in errors.items()])


def test_the_published_cells_hold_our_sets_and_methods():
    for task, metric in salimbeni_ranks.FILES:
        table = salimbeni_ranks.published(task, metric)
        assert len(table) == {"regression": 12, "classification": 19}[task]
        assert set(salimbeni_ranks.SETS[task]) < set(table.index)
        assert table.notna().all(axis=None)
    assert salimbeni_ranks.published("classification", "error").loc["letter", "Orth"] == pytest.approx(1 - 0.9577)
    errors = salimbeni_ranks.published("regression", "error")
    assert (errors.idxmax(axis=1) == "Decoupled").all()  # after erratum sal-6


@pytest.mark.parametrize("metric", ["error", "log_likelihood"])
@pytest.mark.parametrize(("orders", "expected"), [
    ({"OrthNat": 0.5, "Decoupled": 9.0}, (True, True)), ({"OrthNat": 0.5, "Decoupled": 3.0}, (True, False)),
    ({"OrthNat": 1.0, "Decoupled": 9.0}, (False, True)), ({"OrthNat": 4.5, "Decoupled": 4.5}, (False, False)),
])
def test_a_method_is_the_best_or_the_worst_if_no_other_ranks_as_well_or_as_badly(metric, orders, expected, monkeypatch):
    for task in salimbeni_ranks.SETS:
        monkeypatch.setattr(salimbeni_ranks.runner, "results", {"salimbeni_tables": cells(task, **orders)}.get)
        found = salimbeni_ranks.best(task, metric), salimbeni_ranks.worst(task, metric)
        assert tuple(count == (0, 0, 0) for count in found) == expected


def test_one_set_of_another_order_widens_the_interval_of_a_rank(monkeypatch):
    results = cells("regression", OrthNat=0.5)
    results.loc[(results["data"] == "bike") & (results["method"] == "OrthNat"), "rmse"] = 3.5
    monkeypatch.setattr(salimbeni_ranks.runner, "results", {"salimbeni_tables": results}.get)
    assert salimbeni_ranks.best("regression", "error") == (0, 0, 1)     # a draw of four times bike has it behind the first


def test_orthogonal_against_coupled_at_equal_time(monkeypatch):
    results = cells("regression", OrthNat=0.5, CoupledNat_400=0.6)
    results.loc[(results["data"] == "bike") & (results["method"] == "OrthNat"), "rmse"] = 0.6
    monkeypatch.setattr(salimbeni_ranks.runner, "results", {"salimbeni_tables": results}.get)
    found = salimbeni_ranks.behind_at_equal_time("regression")
    assert found.value == pytest.approx(-0.1 * 6 / 7) and found == pytest.approx(significance.student([-0.1] * 6 + [0.0]))
    assert salimbeni_ranks.behind_in_median("regression", "OrthNat").value == 0
    assert salimbeni_ranks.behind_in_median("regression", "Orth").value > 0


def test_pairs_in_another_order():
    one = pd.Series({"a": 1.0, "b": 2.0, "c": 3.0, "d": 3.0})
    assert salimbeni_ranks.exchanged(one, one) == 0
    assert salimbeni_ranks.exchanged(one, -one) == 5  # all but the tie
    assert salimbeni_ranks.exchanged(one, pd.Series({"b": 1.0, "a": 2.0, "c": 3.0, "d": 4.0})) == 1


def test_sets_count_when_every_method_has_been_run_on_them():
    results = cells("regression")
    for part in (results[results["data"] != "bike"], results.drop(index=results.index[-1])):
        assert tuple(salimbeni_ranks.ours("regression", "error", part).index) == salimbeni_ranks.REGRESSION[:-1]


@pytest.mark.parametrize(("task", "metric"), salimbeni_ranks.FILES)
def test_the_drawing_has_a_row_for_each_set_and_a_mark_for_each_method(task, metric):
    fig = plt.figure(figsize=(7, 5))
    salimbeni_ranks.draw(fig, task, metric, cells(task))
    for ax in fig.axes:
        assert len(ax.get_lines()) == len(salimbeni_ranks.COMPARED[task])
        assert all(len(line.get_xdata()) == len(salimbeni_ranks.SETS[task]) for line in ax.get_lines())
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == list(salimbeni_ranks.SETS[task])
    plt.close(fig)


def test_the_orthogonal_basis_is_compared_with_the_coupled_one_of_the_same_beta():
    table = salimbeni_ranks.ours("regression", "error", cells("regression", Orth=1.0, OrthNat=2.0, Coupled_400=0.0))
    assert salimbeni_ranks.no_worse(cells=table).value == 1
    table.loc["bike", "Orth"] = 1.1
    assert salimbeni_ranks.no_worse(cells=table).value == pytest.approx(13 / 14)
    assert salimbeni_ranks.no_worse("log_likelihood", cells=-table).value == pytest.approx(13 / 14)


def test_natural_steps_are_compared_within_a_basis():
    made_up = cells("regression", Orth=2.0, OrthNat=1.0, Coupled_400=2.0, CoupledNat_400=1.0, Coupled_300=1.0, CoupledNat_300=1.0)
    table = salimbeni_ranks.ours("regression", "error", made_up)
    assert salimbeni_ranks.natural_ahead("regression", table).value == pytest.approx(100 * 2 / 3)      # a tie is not ahead
    assert salimbeni_ranks.natural_in_rank("regression", table).value == 2
    table["CoupledNat_400"] = 3.0
    assert salimbeni_ranks.natural_in_rank("regression", table).value == 1
    assert salimbeni_ranks.natural_ahead("regression", table.drop(columns=["CoupledNat_300", "Coupled_300"])).value == 50


def test_the_pairs_of_one_set_are_one_trial():
    made_up = cells("regression", Orth=2.0, OrthNat=1.0, Coupled_400=2.0, CoupledNat_400=1.0, Coupled_300=2.0, CoupledNat_300=1.0)
    table = salimbeni_ranks.ours("regression", "error", made_up)
    assert salimbeni_ranks.natural_ahead("regression", table) == significance.exact_percentage(len(table), len(table))
    table.loc["bike", "OrthNat"] = 3.0
    expected = significance.exact_percentage(len(table) - 1 / 3, len(table))
    assert salimbeni_ranks.natural_ahead("regression", table) == pytest.approx(expected)


def test_the_bases_of_others_are_compared_with_their_beta_alone():
    table = salimbeni_ranks.ours("regression", "error", cells("regression", Hybrid=1.0, Decoupled=3.0, Coupled_300=2.0))
    assert salimbeni_ranks.gamma_ahead(table).value == 50


def test_summaries_over_the_sets_compare_means_medians_and_ranks(monkeypatch):
    made_up = cells("regression", Orth=1.0, OrthNat=1.0, Coupled_300=2.0, CoupledNat_300=2.0)
    cut = {metric: salimbeni_ranks.ours("regression", metric, made_up) for metric in ("error", "log_likelihood")}
    monkeypatch.setattr(salimbeni_ranks, "ours", lambda task, metric: cut[metric])
    assert salimbeni_ranks.better_in_summary().value == 12
    cut["log_likelihood"].loc["bike", "Orth"] = -100.0  # spoils the mean, not median or rank
    assert salimbeni_ranks.better_in_summary().value == 11
    cut["error"]["OrthNat"] = cut["error"]["CoupledNat_300"]  # a tie is no win
    assert salimbeni_ranks.better_in_summary().value == 8


def test_methods_that_share_the_best_rank_lead_together():
    table = salimbeni_ranks.ours("regression", "error", cells("regression", OrthNat=0.5, Orth=0.5))
    assert salimbeni_ranks.leaders(salimbeni_ranks.ranks(table, "error")) == ["OrthNat", "Orth"]
    assert salimbeni_ranks.leaders(salimbeni_ranks.ranks(-table, "log_likelihood")) == ["OrthNat", "Orth"]
    assert salimbeni_ranks.leaders(salimbeni_ranks.ranks(table, "log_likelihood")) == ["Decoupled"]
