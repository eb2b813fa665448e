"""Repeat the one update until nothing moves, with a step that adapts itself."""

import sys
import warnings
from collections.abc import Callable
from traceback import walk_stack
from typing import Any

import numpy as np

from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.sites import ImproperCavityError, Sites

SMALLEST_STEP = 1e-6
RUNAWAY = 100.0  # times further: under an exponential rate that is a step into a region of astronomical counts
PATIENT_STEP = 0.05  # far from the solution the sites may have to move more with every sweep, however short the step
STILL = 1e-12  # sites that move by less have arrived, as those of a Gaussian likelihood do after one sweep
TURNING = 0.5  # sites that turn round but come this much closer need no shorter step
STEP_GROWTH = 1.1  # after a sweep that went well: with 1 some hard problems took twice as many sweeps
DEPTH = 12  # sweeps remembered; 6 took up to twice as many sweeps, 20 were little better
LOST = "the sites run away; start from others, or take another likelihood, kernel or power"
BETWEEN = ("pepcore", "scipy", "functools", "contextlib", "concurrent", "threading")  # these may lie between caller and warning
NEAR = 0.3  # above this change of a site the sweeps are not yet near enough to linear
ASTRAY = 4.0  # mixing may bring the sites no closer in a sweep; this many times further off, the step is too long


def damped_step(change: float, before: float, turned: bool, step: float, largest: float) -> float:
    """The next step, from the change now, the change before the last sweep, and whether the sites turned round.

    It is halved, down to 0.05, when the sites would move more than before; shortened when they turn round and come little
    closer, as the step was too long; and otherwise it recovers by 10 %.
    """
    if change > before:
        return max(0.5 * step, min(step, PATIENT_STEP))
    if turned and change > TURNING * before:
        # near the solution the worst error is multiplied by 1 − κ · step in each sweep; here that is −change/before, so
        # that step/(1 + change/before) would remove it, and leave the other errors
        return max(1.1 * step / (1 + change / before), min(step, PATIENT_STEP))
    return min(STEP_GROWTH * step, largest)


def run_sweeps(
    evaluate: Callable, propose: Callable, start: Any, *,
    step: float, tolerance: float, max_sweeps: int, callback: Callable | None = None, next_step: Callable = damped_step,
) -> tuple[Any, dict]:
    """Sweep until neither a site nor the evidence moves by more than the tolerance.

    A sweep is undone, and tried again at half the step, when a cavity becomes improper or the sites run away, as those
    of large counts do under an exponential rate. After a sweep that is kept, `next_step` gives the next step.

    Parameters
    ----------
    evaluate : callable, from Sites to a state with `sites`, `target`, `move` (see `pepcore.sites.move`) and `log_evidence`;
        raises ImproperCavityError where the sites leave no proper cavity, NotPositiveDefiniteError where no posterior
    propose : callable (state, step) -> what `evaluate` takes, one sweep; for example `pepcore.sites.parallel`
    start : Sites, or whatever else `evaluate` takes and `propose` returns
    step : the longest step, in (0, 1]
    tolerance : for the largest element of `move`, and for the last change of the evidence over max(1, |evidence|)
    max_sweeps : 0 for the state at the start
    callback : called with each record as it enters the history
    next_step : as `damped_step`

    Returns the last state, and a dict of what `Fit` says about the iteration: "converged", "message", "sweeps" and
    "history", a dict for the start and for each sweep: "log_evidence", "change", "step". It issues a
    RuntimeWarning if not converged.
    """
    new, history, largest, sweep, reason = evaluate(start), [], step, 0, ""
    while True:
        state, change = new, _change(new)
        history.append({"log_evidence": state.log_evidence, "change": change, "step": step})
        if callback is not None:
            callback(history[-1])
        converged = change <= tolerance and _steady(history, tolerance)
        if converged or sweep == max_sweeps:
            break
        new, step, reason = _advance(state, change, propose, evaluate, step, largest, next_step)
        if new is None:
            break
        sweep += 1
    message, advice = f"converged after {sweep} sweeps", "give a smaller step or more sweeps, and look at fit.history"
    if not converged:
        message = f"not converged after {sweep} sweeps (change {change:.2g}, tolerance {tolerance:.2g}, step {step:.2g})"
        if new is None:
            message, advice = f"{message}: no step forward is possible, however short", reason
        warn(f"EP has {message}; {advice}")
    return state, {"converged": converged, "message": message, "sweeps": sweep, "history": history}


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning at the line that called the package, whatever decorators, optimisers and threads lie between."""
    names = [frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in walk_stack(sys._getframe())]
    outside = (level for level, name in enumerate(names, start=1) if name not in BETWEEN)
    warnings.warn(message, category, stacklevel=next(outside, len(names)))


def _steady(history: list, tolerance: float) -> bool:
    """Whether the last sweep left the evidence as it was, or the sites have come to rest."""
    if history[-1]["change"] <= STILL:
        return True
    now, before = history[-1]["log_evidence"], history[-2]["log_evidence"] if len(history) > 1 else np.inf
    return abs(now - before) <= tolerance * max(1.0, abs(now))


def _advance(
    state: Any, change: float, propose: Callable, evaluate: Callable, step: float, largest: float, next_step: Callable
) -> tuple[Any, float, str]:
    """The state after one sweep, and the next step; a sweep that fails is tried again at half the step.

    None in place of the state, and why, if no step succeeds.
    """
    new, step, reason = halving(lambda step: unless_astray(evaluate(propose(state, step)), state), step)
    if new is None:
        return None, step, reason
    turned = np.vdot(new.move, state.move) < 0
    return new, next_step(_change(new), change, turned, step, largest), ""


def halving(attempt: Callable, step: float, smallest: float = SMALLEST_STEP) -> tuple[Any, float, str]:
    """Try step, step/2, step/4, ... until `attempt` succeeds; return what it made, that step, and "".

    `attempt(step)` fails by returning None, or by raising ImproperCavityError, or NotPositiveDefiniteError, as for
    I + A diag(τ) Aᵀ with a huge τ. Below `smallest` the search gives up, with None in place of a result, and in words why
    the last step failed.
    """
    reason: Any = LOST
    while step >= smallest:
        try:
            found, reason = attempt(step), LOST
        except (ImproperCavityError, NotPositiveDefiniteError) as problem:
            found, reason = None, problem
        if found is not None:
            return found, step, ""
        step /= 2
    return None, step, str(reason)


def unless_astray(new: Any, old: Any) -> Any:
    """Return `new`, or None if its sites want to move so much further than those of `old` that they are lost."""
    return new if _change(new) <= RUNAWAY * max(1.0, _change(old)) else None


def _change(state: Any) -> float:
    return float(np.abs(state.move).max())


def infer_from(infer: Callable, sites: Any) -> Any:
    """Call infer(sites) or, if these leave no proper cavity, infer(None), which starts from flat sites."""
    try:
        return infer(sites)
    except ImproperCavityError:
        return infer(None)


class Mixing:
    """Anderson mixing: a `propose` for `run_sweeps` that continues from the best combination of the last sweeps.

    The posterior of many classes factorises over them, but the likelihood does not change if all f_c rise together, so
    that parallel sweeps creep along that direction: hundreds are needed where few pseudo-points carry many data. Mixing
    takes 5 to 20 times fewer.

    It takes the affine combination of the last damped sweeps whose residual, extrapolated linearly, is least. Far from
    the fixed point, and after a combination that left no proper cavity, it takes the plain damped sweep. It keeps `DEPTH`
    copies of the sites and of their moves, 4 `DEPTH` numbers for each site.

    Source: H. F. Walker and P. Ni, Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 49 (2011).
    """

    def __init__(self) -> None:
        self.moves: list = []
        self.points: list = []
        self.last: Any = None
        self.combined: Any = None

    def guarded(self, evaluate: Callable) -> Callable:
        """As `evaluate`, except that a combination that leaves no proper cavity gives way to the plain damped sweep.

        The step is not to blame for such a combination: shortened for its sake, it would end at nothing.
        """
        def evaluated(sites: Any) -> Any:
            try:
                return evaluate(sites)
            except (ImproperCavityError, NotPositiveDefiniteError):
                if sites is not self.combined:
                    raise
            plain = self.points[-1]
            self.moves, self.points = [], []
            return evaluate(plain)
        return evaluated

    def __call__(self, state: Any, step: float) -> Any:
        """The next sites."""
        point, move = state.sites.toward(state.target, step), state.move.ravel()
        failed, self.last = state is self.last, state
        if failed or np.abs(move).max() > NEAR:
            self.moves, self.points = [], []
            return point
        self.moves, self.points = [*self.moves, move][-DEPTH:], [*self.points, point][-DEPTH:]
        if len(self.moves) == 1:
            return point
        differences = np.stack([move - past for past in self.moves[:-1]], axis=1)
        weights = np.linalg.lstsq(differences, move, rcond=1e-8)[0]
        self.combined = combine(self.points, [*weights, 1 - weights.sum()])
        return self.combined

    def next_step(self, change: float, before: float, turned: bool, step: float, largest: float) -> float:
        """As `damped_step`, except that near the solution a turn or a small rise does not shorten the step."""
        if change > NEAR:
            return damped_step(change, before, turned, step, largest)
        if change > ASTRAY * before:
            return max(0.5 * step, min(step, PATIENT_STEP))
        return min(STEP_GROWTH * step, largest)


def combine(points: list, weights: list) -> Any:
    """Σ w · sites, for a list of Sites or of TiedSites."""
    if isinstance(points[0], Sites):
        pairs = list(zip(points, weights, strict=True))
        return Sites(sum(w * p.tau for p, w in pairs), sum(w * p.nu for p, w in pairs))
    return points[0].combine(points, weights)
