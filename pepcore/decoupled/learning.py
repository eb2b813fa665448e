"""One step after the other: natural gradients for the coupled part of q, Adam for what else is learnt."""

from functools import lru_cache

import numpy as np

from pepcore.decoupled.bases import Bases
from pepcore.decoupled.bound import StoredRows, bound
from pepcore.decoupled.natural import coupled_step, diagonal_direction, exact_direction
from pepcore.gaussian import NotPositiveDefiniteError
from pepcore.results import Record
from pepcore.training.adam import Adam
from pepcore.training.coordinates import Coordinates
from pepcore.training.minibatch import STREAM_ELEMENTS
from pepcore.training.starts import spread_of

SHORTEST = 2.0**-20  # of the natural step asked for; a shorter one would only hide that q has become improper
# times the size of the first bound, plus a nat a datum; first steps of Adam that are too long fall by thousands and return
FAR = 1e6
TOO_LONG = "the steps are too long. Take a shorter `step`, gamma_rule='adam', or a smaller `rate`."


class DivergenceError(ArithmeticError):
    """The bound is no longer a finite number, or has ended far below where it began: the steps were too long.

    Attributes
    ----------
    history : (steps,) array, the bound as estimated before each step
    """

    def __init__(self, message, history=()):  # without it no process could hand the error to another
        super().__init__(message)
        self.history = np.array(history)


class Learner:
    """q, hyper-parameters and points while they are learnt."""

    def __init__(self, bases, parameters, X, y, likelihood, natural, gamma_rule, optimise, rate, jitter):
        self.bases, self.parameters, self.X, self.y, self.likelihood = bases, parameters, X, y, likelihood
        self.natural, self.gamma_rule, self.jitter = natural, gamma_rule, jitter
        self.learn = tuple(name for name in ("kernel", "likelihood") if name in optimise)
        self.moves = {name: name in optimise for name in ("beta", "gamma")}
        small = len(X) * len(bases.points) <= STREAM_ELEMENTS
        self.hyper = bool(optimise)
        self.stored = StoredRows(bases, X) if small and not self.hyper else None
        self.spread, self.rate, self.adam, self.history = spread_of(X), rate, None, []

    def advance(self, rows, columns, length):
        """One step; the bound before it, as estimated, goes into `history`."""
        X, y = (self.X, self.y) if rows is None else (self.X[rows], self.y[rows])
        stored, weight = self._stored(rows), len(self.X) / len(X)
        with np.errstate(over="ignore", invalid="ignore"):
            how = {
                "weight": weight,
                "columns": columns,
                "stored": stored,
                "hyper": self.hyper,
                "roots": not self.natural,
            }
            now = bound(self.bases, self.parameters, X, y, self.likelihood, **how)
        if not np.isfinite(now.value):
            message = f"the bound has become {now.value} after {len(self.history)} steps: {TOO_LONG}"
            raise DivergenceError(message, [record["log_evidence"] for record in self.history])
        gradients, moved = [now.gradient], [{}]
        if self.several:
            own = [name for name in vars(self.parameters[0]) if name in now.gradient]
            gradients = [{name: now.gradient[name][c] for name in own} for c in range(len(now.data))]
            moved = [{} for _ in gradients]
        by_adam = [dict(vars(output)) for output in self.outputs]
        if self.natural:
            every = zip(self.outputs, *now.outputs, gradients, strict=True)
            moved = [self._natural(*output, length) for output in every]
            gamma_too = self.gamma_rule == "adam" and len(self.bases.gamma) > 0
            by_adam = [{"a_gamma": output.a_gamma} if gamma_too else {} for output in self.outputs]
        kinds = [type(output) for output in self.outputs]
        after = self._adam(by_adam, gradients, now.gradient)
        outputs = tuple(kind(**(one | other)) for kind, one, other in zip(kinds, moved, after, strict=True))
        self.parameters = outputs if self.several else outputs[0]
        self.history.append(Record(step=len(self.history) + 1, log_evidence=now.value))

    @property
    def several(self):
        """Whether there are several latent functions."""
        return isinstance(self.parameters, tuple)

    @property
    def outputs(self):
        """The parameters of every latent function, a tuple."""
        return self.parameters if self.several else (self.parameters,)

    def _stored(self, rows):
        if self.stored is None or rows is None:
            return self.stored
        return lambda block: self.stored(rows[block])

    def _natural(self, output, process, data, gradient, length):
        """The fields of the parameters after a natural step, the coupled part given a_γ, halved until q is proper."""
        kind, tried = type(output), length
        while True:
            try:
                after = coupled_step(self.bases, process, data, tried)
                break
            except NotPositiveDefiniteError:
                tried *= 0.5
                if tried < SHORTEST * length:
                    raise
        moved = dict(vars(kind.from_process(self.bases, after)))
        if self.gamma_rule != "adam" and len(self.bases.gamma):
            direction = {"diagonal": diagonal_direction, "exact": exact_direction}[self.gamma_rule]
            moved["a_gamma"] = moved["a_gamma"] + length * direction(self.bases, gradient["a_gamma"])
        return moved

    def _adam(self, by_adam, gradients, shared):
        """The fields in the dicts `by_adam` after a step of Adam; kernel, points and likelihood move in the same step."""
        fields = [(c, name, value) for c, part in enumerate(by_adam) for name, value in part.items()]
        parts = [packed(value) for _, _, value in fields]
        slopes = [packed(gradients[c][name]) for c, name, _ in fields]
        coordinates = Coordinates((*self.learn, "Z"), self.spread) if self.hyper else None
        if self.hyper:
            values = {"kernel": self.bases.kernel, "likelihood": self.likelihood, "Z": self.bases.points}
            held = np.vstack([self.moves[name] * shared[name] for name in ("gamma", "beta")])
            parts.append(coordinates.pack(values))
            slopes.append(coordinates.pack_gradient(values, shared | {"Z": held}))
        moved = [{} for _ in by_adam]
        if not parts:
            return moved
        if self.adam is None:
            self.adam = Adam(np.concatenate(parts), self.rate)
        point = self.adam.ascend(np.concatenate(slopes))
        for c, name, value in fields:
            size = len(packed(value))
            moved[c][name], point = unpacked(point[:size], value), point[size:]
        if self.hyper:
            values, G = coordinates.unpack(point, values), len(self.bases.gamma)
            self.likelihood = values["likelihood"]
            self.bases = Bases.build(values["kernel"], values["Z"][G:], values["Z"][:G], self.jitter)
        return moved


def check_end(history, value, size):
    """Raise DivergenceError if the bound of all `size` data is not finite in the end, or lies `FAR` below the first.

    Only in the end: on the way the bound may fall as far and return, since a step of Adam does not grow with the gradient.

    Parameters
    ----------
    history : list of float, the bound as estimated before each step
    value : float, the bound after the last one
    size : int
    """
    values = np.array([*history, value])
    far = ~np.isfinite(values) | (values < values[0] - FAR * (abs(values[0]) + size))
    if far[-1]:
        raise DivergenceError(
            f"the bound was {values[0]:.4g} at first, far below that after {far.argmax()} steps and {value:.4g} in the "
            f"end: {TOO_LONG}",
            history,
        )


def packed(value):
    """A vector, or the lower triangle of a matrix as one."""
    return value if value.ndim == 1 else value[_lower_triangle(len(value))]


def unpacked(numbers, like):
    """What `packed` made `numbers` of, shaped as `like`."""
    if like.ndim == 1:
        return numbers.copy()
    matrix = np.zeros(like.shape)
    matrix[_lower_triangle(len(matrix))] = numbers
    return np.asfortranarray(matrix)


@lru_cache(maxsize=4)
def _lower_triangle(size):
    return np.tri(size, dtype=bool)
