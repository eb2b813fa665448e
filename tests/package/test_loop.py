"""What all learners share: steps that are taken back, interrupts that lose nothing, steps that are halved."""

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from pepcore import decoupled, multiclass, power_ep, training
from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.kernels import SquaredExponential
from pepcore.likelihoods import Probit
from pepcore.multiclass.inference import Method
from pepcore.sites import ImproperCavityError
from pepcore.sweeps import SMALLEST_STEP, halving, infer_from
from pepcore.training.coordinates import Coordinates
from pepcore.training.loop import Adam, Interruptible, Learner, remedied, run

KERNEL = SquaredExponential(1.0, [1.0, 1.0])


def data(N=40):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)


# --- halving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [None, ImproperCavityError("no cavity"), NotPositiveDefiniteError("no posterior")])
def test_a_step_is_halved_until_it_leads_somewhere(problem):
    tried = []

    def attempt(step):
        tried.append(step)
        if step > 0.2 and problem is not None:
            raise problem
        return 10 * step if step <= 0.2 else None

    assert halving(attempt, 0.8) == (2.0, 0.2, "")
    assert tried == [0.8, 0.4, 0.2]


def test_halving_ends_below_the_smallest_step():
    tried = []
    found, step, reason = halving(tried.append, 1.0)
    assert found is None and step < SMALLEST_STEP <= tried[-1] and len(tried) == 20
    assert reason.startswith("the sites run away")
    assert halving(tried.append, 1.0, smallest=0.3)[:2] == (None, 0.25)


def test_halving_says_why_the_last_step_failed():
    def attempt(step):
        raise ImproperCavityError(f"no cavity at {step:g}")

    assert halving(attempt, 1.0, smallest=0.3) == (None, 0.25, "no cavity at 0.5")


def test_halving_hides_no_other_error():
    def attempt(step):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        halving(attempt, 1.0)


def test_inference_begins_anew_where_sites_leave_no_proper_cavity():
    def infer(sites):
        if sites == "negative":
            raise ImproperCavityError
        return sites

    assert infer_from(infer, "proper") == "proper"
    assert infer_from(infer, "negative") is None


def test_remedies_are_tried_in_order_and_no_more_than_needed():
    taken = []

    def attempt():
        if len(taken) < 1:
            raise ImproperCavityError
        return "moments"

    assert remedied(attempt, lambda: taken.append("sum"), lambda: taken.append("sites")) == "moments"
    assert taken == ["sum"]


# --- the loop --------------------------------------------------------------------------------------------------------


class Uphill(Learner):
    """Adam on a slope of 1, in steps of 0.1 of log(noise); a step from values above `edge` fails, and so does their end."""

    def __init__(self, edge, problem):
        super().__init__({"noise": 1.0}, Coordinates(("noise",), np.ones(1)), 0.1)
        self.edge, self.problem = edge, problem

    def check(self):
        if self.values["noise"] > self.edge:
            raise self.problem

    def step(self, item):
        self.check()
        self.climb({"noise": 1 / self.values["noise"]})  # a slope of 1 in the logarithm
        return {"log_evidence": float(item)}

    def result(self):
        return self.values["noise"]

    def finish(self, message):
        self.check()
        return self.values["noise"], message


@pytest.mark.parametrize("problem", [LinAlgError("K_uu"), NotPositiveDefiniteError("K_uu"), ImproperCavityError("K_uu")])
def test_the_last_step_is_taken_back_after_a_failure(problem):
    learner, seen = Uphill(np.exp(0.25), problem), []
    noise, message = run(learner, range(10), "10 steps", lambda record: seen.append(record.result()))
    assert noise == pytest.approx(np.exp(0.2)) and seen == pytest.approx(np.exp([0.1, 0.2, 0.3]))
    assert message == "stopped after 3 steps, the last of which is taken back: K_uu"
    assert [record["step"] for record in learner.history] == [1, 2, 3]


def test_a_failure_at_the_end_takes_the_last_step_back():
    noise, message = run(Uphill(np.exp(0.25), LinAlgError("K_uu")), range(3), "3 steps")
    assert noise == pytest.approx(np.exp(0.2)) and message == "3 steps; the last step is taken back: K_uu"


def test_a_learner_may_tell_of_a_failure_instead():
    with pytest.raises(LinAlgError, match="K_uu"):
        run(Uphill(np.exp(0.25), LinAlgError("K_uu")), range(10), "10 steps", mended=())


def test_records_are_numbered_by_the_name_that_is_asked_for_and_forget_their_model():
    learner = Uphill(np.inf, None)
    run(learner, range(2), "2 iterations", count="evaluation")
    assert learner.history == [{"evaluation": 1, "log_evidence": 0.0}, {"evaluation": 2, "log_evidence": 1.0}]
    assert all(record.result is None and record.parameters is None for record in learner.history)


def test_nothing_but_an_interrupt_is_caught():
    with Interruptible() as watch:
        raise KeyboardInterrupt
    assert watch.interrupted
    with pytest.raises(ValueError, match="wrong"), Interruptible() as watch:
        raise ValueError("wrong")
    assert not watch.interrupted


def doors():
    X, y = data()
    labels, classes = np.where(y > 0, 1.0, -1.0), (X[:, 0] > 0.3) + 1.0 * (X[:, 1] > 0)
    few = {"M": 5, "epsilon": None}
    return {
        "fit": lambda callback: training.fit(KERNEL, X, y, M=5, callback=callback),
        "fit of infer": lambda callback: training.fit(
            KERNEL, X, labels, infer=power_ep.infer, likelihood=Probit(), M=5, callback=callback
        ),
        "minibatch": lambda callback: training.fit_minibatch(KERNEL, X, labels, Probit(), M=5, batch=10, callback=callback),
        "outer": lambda callback: multiclass.fit(
            None, X, classes, update="outer", optimiser="lbfgs", callback=callback, **few
        ),
        "joint": lambda callback: multiclass.fit(
            None, X, classes, approximation="vi", update="joint", optimiser="lbfgs", callback=callback, **few
        ),
        "adam": lambda callback: multiclass.fit(None, X, classes, optimiser="adam", callback=callback, **few),
        "adaptive": lambda callback: multiclass.fit(None, X, classes, approximation="sep", callback=callback, **few),
        "multiclass minibatch": lambda callback: multiclass.fit_minibatch(
            [KERNEL] * 3, X[:5], (X, classes), approximation="gfitc", batch=10, callback=callback
        ),
        "decoupled": lambda callback: decoupled.infer(
            KERNEL, X[:5], X[5:10], X, labels, Probit(), optimise=("kernel", "beta"), callback=callback
        ),
    }


@pytest.mark.filterwarnings("ignore:EP has not converged")
@pytest.mark.parametrize("door", doors())
def test_an_interrupt_at_any_door_keeps_what_was_learnt(door):
    seen = []

    def callback(record):
        seen.append((record, record.parameters, record.result().log_evidence))
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = doors()[door](callback)
    assert found.message.startswith("interrupted") and len(found.history) >= 3
    assert all(any(record is kept for kept in found.history) for record, _, _ in seen)
    X, _ = data()
    assert np.isfinite(found.log_evidence) and all(np.isfinite(part).all() for part in found.predict_f(X))
    if door in ("fit", "fit of infer", "outer", "joint"):
        assert found.log_evidence == pytest.approx(max(value for _, _, value in seen), abs=1e-3)
    else:
        parameters = found.bases.kernel.parameters if door == "decoupled" else found.parameters
        first = seen[0][1]
        changed = first["kernel"].parameters if door == "decoupled" else first
        name = next(iter(parameters))
        assert not np.array_equal(changed[name], parameters[name])


# --- the search with many classes ------------------------------------------------------------------------------------


def test_evidence_of_inference_that_has_not_converged_is_no_evidence(monkeypatch):
    """Beyond a kernel variance of 3 inference stops early and claims a huge evidence: the search takes a wall for it."""
    X, y = data()
    y, original, claimed = (y > 0).astype(float), Method.converge, []

    def converge(self, maps, *rest, **options):
        fit = original(self, maps, *rest, **options)
        if maps.kernels[0].variance > 3:
            claimed.append(len(claimed))
            object.__setattr__(fit, "converged", False)
            object.__setattr__(fit, "log_evidence", 1e6)
        return fit

    monkeypatch.setattr(Method, "converge", converge)
    options = {"M": 5, "update": "outer", "optimiser": "lbfgs", "optimise": ("kernels",), "shared": True, "tolerance": 1e-8}
    model = multiclass.fit(None, X, y, iterations=30, **options)
    trace = model.trace()
    refused = np.flatnonzero(np.isnan(trace))
    assert claimed and len(refused) == len(claimed)
    assert model.fit.converged and model.kernels.variance <= 3 and model.log_evidence == pytest.approx(np.nanmax(trace), abs=1e-5)
    # the wall is low: what follows a refusal still rises
    assert np.nanmax(trace[refused[0] + 1 :]) > np.nanmax(trace[: refused[0]]) + 1e-3


def test_a_search_that_never_converges_says_so():
    X, y = data()
    options = {"M": 5, "update": "outer", "optimiser": "lbfgs", "iterations": 2, "max_sweeps": 0}
    with pytest.warns(RuntimeWarning, match="not converged after 0 sweeps"):
        model = multiclass.fit(None, X, (y > 0).astype(float), **options)
    assert model.message.endswith("inference has not converged, not even at the best point")
    assert not model.converged and not model.fit.converged


def test_adam_says_once_that_gradients_are_not_finite():
    climber = Adam(np.zeros(2), 0.1)
    with pytest.warns(RuntimeWarning, match="not finite"):
        climber.ascend(np.array([np.nan, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(climber.ascend(np.array([1.0, np.inf])), [0.0, 0.0])
    assert climber.steps == 0
