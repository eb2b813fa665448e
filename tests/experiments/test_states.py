"""How far a study has come: what is missing, stale or damaged, and the hours that are left."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from made_up import here, values

from figures import __main__ as command_line
from figures.experiments import costs, provenance, runner, states, tables

pytest_plugins = ["study_fixtures"]


def test_costs_find_a_law_and_foretell_runs_of_which_none_is_finished():
    """Seconds that grow as M² and depend on the set: within 3 % for a size of a set that was not run."""
    def seconds(data, M, alpha):
        return {"a": 0.2, "b": 3.0, "c": 1.0}[data] * (1 + M) ** 2 / 1000 * (1 + alpha)

    runs = [{"data": data, "M": M, "alpha": alpha}
            for data, M, alpha in itertools.product("abc", (5, 10, 20, 50, 100, 200), (0.0, 0.5, 1.0))]
    missing = [run for run in runs if run["data"] == "b" and run["M"] == 200]
    finished = [run for run in runs if run not in missing]
    found = costs.seconds_of(finished, [seconds(**run) for run in finished], missing)
    expected = np.array([seconds(**run) for run in missing])
    np.testing.assert_allclose(found, expected, rtol=0.03)


def test_splits_that_ran_on_a_busy_machine_do_not_stretch_the_others():
    runs = [{"M": M, "split": split} for split in range(20) for M in (10, 50)]
    seconds = [(1 + run["split"]) * run["M"] / 10 for run in runs[:6]]      # the third split took three times as long
    assert np.mean(costs.seconds_of(runs[:6], seconds, runs[6:])) == pytest.approx(np.mean(seconds), rel=0.02)


def test_costs_without_a_finished_run():
    assert list(costs.seconds_of([], [], [{"a": 1}, {"a": 2}])) == [costs.SECONDS] * 2


def test_costs_of_runs_with_one_value():
    assert costs.seconds_of([{"a": 1}], [4.0], [{"a": 1}]) == pytest.approx([4.0])


def test_the_hours_that_a_repetition_would_take_are_said(listed, capsys):
    runner.run(listed, execute=here)
    rows = [row | {"seconds": "3600.0", "code": row["code"] if row["split"] == "1" else ""} for row in runner.read_rows(listed)]
    tables.write_rows(listed, rows)
    assert states.state_of(listed).hours_stale == 8.0
    assert command_line.main(["status"]) == 0
    assert "12 hours with one thread done, 0 left; `run --all --stale` would repeat 8\n" in capsys.readouterr().out


def test_the_state_of_a_study(listed):
    runner.run(listed, splits=2, execute=here)
    state = states.state_of(listed)
    assert dict(zip(states.HEADINGS, state.cells)).items() >= {
        "study": listed.id, "runs": "12", "done": "8", "missing": "4", "failed": "0", "stale": "0", "undated": "0",
        "corrupt": "0"}.items()


def test_the_hours_of_a_study_are_those_of_its_rows_and_what_is_left_those_of_runs_like_them(listed):
    runner.run(listed, splits=2, execute=here)
    rewritten(listed, seconds="2.0")
    state = states.state_of(listed)
    assert state.hours == pytest.approx(8 * 2 / 3600) and state.hours_left == pytest.approx(4 * 2 / 3600)


def test_the_hours_of_a_failed_run_say_nothing_of_those_to_come(listed):
    runner.run(listed, splits=2, execute=here)
    rewritten(listed, seconds="2.0")
    rewritten(listed, split="0", error="it failed", seconds="1000000.0")
    assert states.state_of(listed).hours_left == pytest.approx(4 * 2 / 3600)


def test_what_runs_cost_is_the_mean_of_what_is_scattered():
    rng = np.random.default_rng(0)
    runs = [{"M": M, "split": split} for M in (10, 100) for split in range(400)]
    seconds = [run["M"] * np.exp(rng.normal()) for run in runs]
    expected = costs.seconds_of(runs, seconds, [{"M": 10, "split": 9}, {"M": 100, "split": 0}])
    np.testing.assert_allclose(expected, np.exp(0.5) * np.array([10, 100]), rtol=0.15)


def test_no_run_is_expected_to_last_ten_times_longer_than_what_was_seen():
    runs = [{"M": M} for M in (1, 2, 4)]
    assert costs.seconds_of(runs, [1.0, 8.0, 64.0], [{"M": 10**6}])[0] == 640.0


@pytest.mark.parametrize("name", costs.REPETITIONS)
def test_a_busy_machine_in_the_first_splits_does_not_count_for_the_others(name):
    runs = [{"M": 10, name: number} for number in range(4)]
    now, later = costs.seconds_of(runs, [8.0, 4.0, 2.0, 1.0], [{"M": 10, name: 0}, {"M": 10, name: 99}])
    assert now == later


def rewritten(study, split=None, **changes):
    """Write the changes into the rows of the split, or into all."""
    tables.write_rows(study, [row | changes if split in (row["split"], None) else row for row in runner.read_rows(study)])


def test_rows_of_another_code_are_stale_and_those_that_name_none_are_undated(listed, capsys):
    runner.run(listed, execute=here)
    rewritten(listed, split="0", code="0123456789ab")
    assert (states.state_of(listed).stale, states.state_of(listed).undated) == (4, 0)
    rewritten(listed, split="0", code="")
    assert (states.state_of(listed).stale, states.state_of(listed).undated) == (0, 4)
    assert command_line.main(["status"]) == 0
    names, line, _ = capsys.readouterr().out.splitlines()
    assert dict(zip(names.split(), line.split()))["undated"] == "4"


def test_stale_runs_are_computed_again_one_by_one(listed, capsys, monkeypatch):
    runner.run(listed, execute=here)
    expected = values(listed)
    rewritten(listed, split="0", code="0123456789ab", product="99.0")

    def stopped(function, items):
        yield function(next(iter(items)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(listed, stale=True, execute=stopped)
    assert len(runner.read_rows(listed)) == 12, "the old rows stay until the new ones are there"
    assert states.state_of(listed).stale == 3
    monkeypatch.setattr(runner.executors, "on_this_machine", lambda jobs: here)
    assert command_line.main(["run", "--all", "--stale"]) == 0
    assert "computed 3 runs" in capsys.readouterr().out
    assert values(listed) == expected


def test_a_stale_run_that_fails_loses_no_row(listed, monkeypatch):
    runner.run(listed, execute=here)
    monkeypatch.setattr(provenance, "code", lambda module: "0123456789ab")
    monkeypatch.setenv("STUDY_FAILS", "1")
    assert runner.run(listed, stale=True, execute=here) == (12, 4)
    assert not any(row["error"] for row in runner.read_rows(listed))
    assert states.state_of(listed).stale == 4


def test_all_studies_are_run_though_one_is_damaged(listed, capsys, monkeypatch):
    damaged = runner.Study("damaged", listed.module, listed.folder)
    damaged.file.parent.mkdir(parents=True, exist_ok=True)
    damaged.file.write_text("no table\n")
    monkeypatch.setattr(runner, "studies", lambda: ["damaged", listed.id])
    monkeypatch.setattr(runner, "load", {"damaged": damaged, listed.id: listed}.get)
    assert command_line.main(["run", "--all", "--jobs", "1"]) == 2
    assert "error: damaged: " in capsys.readouterr().err
    assert len(runner.read_rows(listed)) == 12


def test_all_studies_share_their_minutes_and_none_is_started_after_them(listed, monkeypatch, capsys):
    clock, given = iter([0.0, 0.0, 60.0, 600.0]), []
    monkeypatch.setattr(runner, "studies", lambda: [listed.id] * 3)
    monkeypatch.setattr(command_line, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(command_line, "run_study", lambda _, options, minutes: given.append(minutes) or 0)
    assert command_line.main(["run", "--all", "--budget-minutes", "3"]) == 0
    assert given == [3, 2]
    assert "the time is up; the other studies were not started" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "words"), [(["--jobs", "x"], "must be a whole number, got 'x'"),
                                              (["--budget-minutes", "soon"], "must be a number of minutes, got 'soon'")])
def test_an_option_that_is_no_number_is_named(listed, capsys, option, words):
    with pytest.raises(SystemExit):
        command_line.main(["run", listed.id, *option])
    assert words in capsys.readouterr().err


def test_all_studies_need_no_splits(listed, capsys):
    assert command_line.main(["run", "--all", "--splits", "1"]) == 2
    assert "--splits is for one study" in capsys.readouterr().err
