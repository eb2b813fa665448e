"""L-BFGS on all data, guarded against values of the evidence from inference that has not converged or has failed."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from pepcore.gaussian import Array
from pepcore.results import Record
from pepcore.training.coordinates import Coordinates, open_box
from pepcore.training.loop import INTERRUPTED, Interruptible, bar

SAME = 1e-6  # relative difference of two values of the evidence from inference that stops a little earlier or later
WINDOW = 10  # steps over which a rise of the evidence is measured
MEMORY = 100  # steps from which L-BFGS infers the curvature; with SciPy's 10 a search takes about twice the evaluations


class _SettledError(Exception):
    """Inference now converges, but L-BFGS stands on a point where it had not: the search must begin again."""


class Search:
    """L-BFGS from one or more starts; remembers the best point, so that an interrupt or a failure loses nothing.

    If the inference of an evaluation has not converged, its log evidence need not be right: the evaluation
    counts as failed, unless none before it in the same start has converged.

    Parameters
    ----------
    evaluate : callable (values), returns what has `log_evidence`, `gradient` and, if it iterates, `converged`
    coordinates : Coordinates
    limits : dict, the options of SciPy's "L-BFGS-B" except "maxcor", with "maxfun" among them
    least_rise, progress, callback : as in `training.fit`
    result : callable (values, evaluation), makes the result of an evaluation for the callback

    Attributes
    ----------
    best_values, best_found : the values of the best evaluation, and what `evaluate` returned there
    converged : bool, whether the start that gave these met a tolerance
    message : str, how that start ended
    history : list of Record, one for each evaluation
    """

    def __init__(
        self, evaluate: Callable, coordinates: Coordinates, limits: dict, *,
        least_rise: float = 0.0, progress: bool = False, callback: Callable | None = None,
        result: Callable = lambda values, found: found,
    ) -> None:
        self.evaluate, self.coordinates, self.limits = evaluate, coordinates, limits | {"maxcor": MEMORY}
        self.least_rise, self.progress, self.callback, self.result, self.bar = least_rise, progress, callback, result, None
        self.history: list = []
        self.best_values: Any = None
        self.best_found: Any = None
        self.best = (False, -np.inf)  # whether its inference had converged, which counts first, and its evidence
        self.converged, self.message = False, ""

    def maximise(self, starts: Iterable[dict]) -> None:
        """Search from each start. Ctrl-C ends it and keeps the best point; before there is one, it raises KeyboardInterrupt.

        Raises LinAlgError if no evaluation of the first start gave a number.
        """
        with Interruptible() as watch, bar(self.progress, " evaluations") as self.bar:
            for start in starts:
                self._search(start)
        if watch.interrupted:
            if self.best_values is None:
                raise KeyboardInterrupt
            self.message = f"{INTERRUPTED}; the best point so far is kept" + self._doubt

    def _search(self, start: dict) -> None:
        """L-BFGS from the start; once more from a point that its line search passed and that is better than where it ended."""
        before, end = self.best, len(self.history) + self.limits["maxfun"]
        ending = self._climb(start, end)
        while self.best > before and self._passed_a_better_point(ending) and len(self.history) < end:
            passed = self.best
            ending = self._climb(self.best_values, end)
            if self.best == passed:
                break
        if self.best > before:
            arrived = bool(ending.success) and not self._passed_a_better_point(ending)
            self.converged, self.message = self.best[0] and arrived, str(ending.message) + self._doubt
        if self.best_values is None:
            raise LinAlgError("the evidence could not be evaluated at the start; look for extreme values in the "
                              "starting kernel, noise or Z, or standardise the data.")

    def _climb(self, start: dict, end: int) -> Any:
        """Where L-BFGS ends from the start, as SciPy describes it; `end` is the longest that the history may become."""
        from scipy.optimize import minimize  # imported on demand: it would slow down `import pepcore`

        self.current = start
        point, bounds = self.coordinates.pack(start), open_box(self.coordinates.bounds(start))
        self.settled, self.latest = False, (point, np.inf, np.zeros_like(point))
        self.accepted: Any = None
        options: dict[str, Any] = {"method": "L-BFGS-B", "jac": True, "bounds": bounds, "callback": self._accept}
        limits = lambda: self.limits | {"maxfun": end - len(self.history)}
        self.climbed: list = []
        try:
            ending = minimize(self._objective, point, **options, options=limits())
        except _SettledError:
            self.accepted, self.climbed = None, []
            ending = minimize(self._objective, self.latest[0], **options, options=limits())
        if self._hardly_rises():
            ending.success, ending.message = True, f"{WINDOW} steps raised the log evidence by less than {self.least_rise:g}"
        elif not ending.success and len(self.history) >= end:
            ending.message = f"{self.limits['maxfun']} evaluations were not enough"
        return ending

    def _hardly_rises(self) -> bool:
        return len(self.climbed) > WINDOW and self.climbed[-1] - self.climbed[-1 - WINDOW] < self.least_rise

    def _passed_a_better_point(self, ending: Any) -> bool:
        return self.best[1] > -ending.fun + max(self.limits.get("ftol", 0.0), SAME) * max(1.0, abs(self.best[1]))

    def _objective(self, point: Array) -> tuple[float, Array]:
        values: Any = None
        lost = not np.isfinite(point).all()  # between walls L-BFGS may propose NaN
        try:
            if lost:
                raise LinAlgError
            values = self.coordinates.unpack(point, self.current)
            found = self.evaluate(values)
            value, gradient = found.log_evidence, self.coordinates.pack_gradient(values, found.gradient)
            settled = getattr(found, "converged", True)
        except LinAlgError:
            value, settled = np.nan, True
        failed = not (np.isfinite(value) and np.all(np.isfinite(gradient)))
        refused = self.settled and not settled
        record = Record(evaluation=len(self.history) + 1, log_evidence=np.nan if refused else value)
        self.history.append(record)
        if self.bar is not None:
            self.bar.update()
            self.bar.set_postfix(log_evidence=f"{max(record['log_evidence'], self.best[1]):.2f}")
        if failed or refused:  # a wall: the line search steps back
            if self.accepted is None or lost:
                return 1e30, np.zeros_like(point)
            # as far above the start of the line search as its slope there would lead below it: too high for the point to
            # be taken, but low enough that the next step is a fraction of this one, not almost nothing
            start, before, slope = self.accepted
            return before + abs(slope @ (point - start)), np.zeros_like(point)
        at_last = settled and not self.settled and self.accepted is not None
        self.latest, self.settled = (point.copy(), -value, -gradient), settled
        if self.accepted is None:
            self.accepted = self.latest
        if (settled, value) > self.best:
            self.best, self.best_values, self.best_found, self.converged = (settled, value), values, found, False
        record.show(self.callback, lambda: self.result(values, found), values)
        if at_last:
            raise _SettledError
        return -value, -gradient

    @property
    def _doubt(self) -> str:
        """What `message` adds if inference converged at no point."""
        return "" if self.best[0] else "; inference has not converged, not even at the best point"

    def _accept(self, _: Array) -> None:
        """L-BFGS begins its next line search at the latest evaluation, if it is to go on."""
        self.accepted = self.latest
        self.climbed.append(-self.latest[1])
        if self._hardly_rises():
            raise StopIteration
