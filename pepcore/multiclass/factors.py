"""What each datum says about the C latent functions: the likelihood `RobustMax`, and the factors that stand for it.

`Pairwise` has for every datum one factor for each rival k of its class y, Φ((f_y − f_k)/√(noise_y + noise_k)); each
makes a site in class y and one in class k. `Joint` has one factor for each datum, which says that f_y is the largest, and
makes one site in every class. `gather` puts (C, N) marginals into the layout of the sites, `scatter` adds sites up.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array, log1p_ratio
from pepcore.likelihoods import Probit
from pepcore.multiclass.quadrature import log_largest, probabilities, rivals_of
from pepcore.validation import as_real, check_all_not_negative, check_count, check_finite


class Tilted(NamedTuple):
    """l_α of every factor and its derivatives, in the layout of the sites."""

    l: Array  # (C − 1, N) or (N,)
    d1: Array  # in the cavity means
    d2: Array
    dnoise: Array  # in the noise of each class


class Pairwise:
    """Φ of the difference to one rival: (C − 1) N factors with two sites each; the layout of sites is (2, C − 1, N).

    y (N,) are labels in 0 ... C − 1.

    Source: villacampa2017 eqs (6) to (8), with the sum over k ≠ y_i; :eq:`mc-pieces`.
    """

    def __init__(self, y: np.ndarray, C: int) -> None:
        self.y, self.C, self.rivals = y, C, rivals_of(y, C)
        self.shape: tuple = (2, C - 1, len(y))

    def gather(self, values: Array) -> Array:
        """(C, N) -> (2, C − 1, N): for each factor the values of its datum's own class and of the rival."""
        own = np.take_along_axis(values, self.y[None], axis=0)
        return np.stack([np.broadcast_to(own, self.rivals.shape), np.take_along_axis(values, self.rivals, axis=0)])

    def scatter(self, values: Array) -> Array:
        """(2, C − 1, N) -> (C, N): for each class and datum the sum over sites; the transpose of `gather`."""
        total = np.empty((self.C, len(self.y)))
        np.put_along_axis(total, self.y[None], values[0].sum(axis=0)[None], axis=0)
        np.put_along_axis(total, self.rivals, values[1], axis=0)
        return total

    def tilted(self, mean: Array, variance: Array, noise: Array, alpha: float) -> Tilted:
        """Moments of Φ(·)^alpha for f ~ N(mean, variance), both (2, C − 1, N); noise (C,) > 0.

        A factor depends on d = f_y − f_k alone, so this is the probit likelihood of d divided by the standard deviation
        of its noise: in closed form at α = 1, else by quadrature.

        Source: villacampa2017 eq. (6) for α = 1; :eq:`mc-difference`, :eq:`mc-signs`.
        """
        noises = self.gather(np.broadcast_to(noise[:, None], (self.C, len(self.y)))).sum(axis=0)
        scale, difference, total = np.sqrt(noises), mean[0] - mean[1], variance[0] + variance[1]
        l, d1, d2 = Probit().log_moment(1.0, difference / scale, total / noises, alpha)
        d1, d2 = d1 / scale, d2 / noises
        if alpha == 1:  # noise is variance
            dnoise = 0.5 * (d2 + d1**2)
        else:  # l stays the same if mean², variance and noise are scaled alike
            dnoise = -0.5 * (difference * d1 + total * (d2 + alpha * d1**2)) / noises
        return Tilted(l, np.stack([d1, -d1]), np.stack([d2, d2]), np.stack([dnoise, dnoise]))


class Joint:
    """The robust-max factor, 1 − ε if f_y is the largest and ε/(C − 1) if not: N factors with C sites each, in the layout (C, N).

    The noise is part of each f here, so the factor takes only two values, and so does its power. With ε = 0 and α
    = 1 this is EP on the exact factors, with ε > 0 and α = 0 variational inference. y (N,) are labels in 0 ... C − 1,
    and epsilon in [0, 1) is the probability of a wrong label.

    Source: villacampa2017 eqs (1), (3) and (13), whose ε is ours times C/(C − 1); :eq:`mc-robust`, :eq:`mc-two-values`.
    """

    def __init__(self, y: np.ndarray, C: int, epsilon: float) -> None:
        self.y, self.C, self.epsilon = y, C, epsilon
        self.shape: tuple = (C, len(y))

    def gather(self, values: Array) -> Array:
        return values

    def scatter(self, values: Array) -> Array:
        return values

    def tilted(self, mean: Array, variance: Array, noise: Array, alpha: float) -> Tilted:
        """Moments of the factor's power alpha for f ~ N(mean, variance), both (C, N); noise (C,) > 0.

        If the factor is a where f_y is the largest and b elsewhere, and P is the probability of the former:
        l = log b + log(1 + α P R)/α, R = ((a/b)^α − 1)/α.
        """
        log_p, slope, bend = log_largest(self.y, mean, variance + noise[:, None])
        if self.epsilon == 0:
            l, weight = log_p / alpha, 1 / alpha
        else:
            right, wrong = 1 - self.epsilon, self.epsilon / (self.C - 1)
            log_ratio = np.log(right / wrong)
            growth = np.expm1(alpha * log_ratio) / alpha if alpha > 0 else log_ratio
            gain = np.exp(log_p) * growth
            l, weight = np.log(wrong) + gain * log1p_ratio(alpha * gain), gain / (1 + alpha * gain)
        d1 = weight * slope
        return Tilted(l, d1, weight * bend - alpha * d1**2, 0.5 * weight * bend)


def factors_of(approximation: str, y: Array, C: int, epsilon: float) -> Pairwise | Joint:
    """The factors of an approximation, for labels y (N,)."""
    return Joint(y, C, epsilon) if approximation in ("gfitc", "vi") else Pairwise(y, C)


@dataclass(frozen=True, eq=False)
class RobustMax:
    """P(y|f) = 1 − ε if f_y + noise is the largest of C noisy latent functions, and ε/(C − 1) if it is not.

    Parameters
    ----------
    classes : int, C >= 2; labels are 0 ... C − 1
    epsilon : float, in [0, 1), the probability of a wrong label; 0 with noise is the probit likelihood of many classes
    noise : float or (C,), variance of the noise on each latent function, >= 0

    Source: villacampa2017 eqs (1), (3) and (13), whose ε is ours times C/(C − 1); salimbeni2018 section 4.
    """

    classes: int
    epsilon: float = 1e-3
    noise: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_count(self.classes, "classes"))
        object.__setattr__(self, "epsilon", check_wrong(self.epsilon))
        if self.classes < 2:
            raise ValueError(f"classes = {self.classes} must be at least 2")
        noise = check_all_not_negative(self.noise, "noise")
        if noise.shape not in ((), (self.classes,)):
            raise ValueError(f"noise has shape {noise.shape}, expected one number or shape ({self.classes},)")
        object.__setattr__(self, "noise", np.broadcast_to(noise, (self.classes,)).copy())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RobustMax):
            return NotImplemented
        same = (self.classes, self.epsilon) == (other.classes, other.epsilon)
        return same and np.array_equal(self.noise, other.noise)

    def __hash__(self) -> int:
        return hash((self.classes, self.epsilon, self.noise.tobytes()))

    def __repr__(self) -> str:
        low, high = self.noise.min(), self.noise.max()
        noise = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        return f"RobustMax(classes={self.classes}, epsilon={self.epsilon:.4g}, noise={noise})"

    @property
    def parameters(self) -> dict:
        """dict: empty; `multiclass.fit` learns the noise."""
        return {}

    def with_parameters(self, parameters: dict) -> Self:
        """The same likelihood; `parameters` must be empty."""
        if parameters:
            raise ValueError(f"unknown likelihood parameters {sorted(parameters)}; RobustMax has none to learn.")
        return self

    def log_moment(self, y: np.ndarray, mean: Array, variance: Array, alpha: float) -> tuple[Array, Array, Array]:
        """l_α (N,) and its first two derivatives in the means, d1 and d2 (C, N).

        Parameters
        ----------
        y : (N,) int
        mean, variance : (C, N) of the latent functions, which are independent; variance > 0
        alpha : float, in [0, 1]

        Raises ValueError for alpha = 0 with epsilon = 0: the factor can be 0, and log 0 has no expectation.
        Source: :eq:`mc-two-values`.
        """
        check_wrong(self.epsilon, alpha)
        tilted = Joint(y, self.classes, self.epsilon).tilted(mean, variance, self.noise, alpha)
        return tilted.l, tilted.d1, tilted.d2

    def predict(self, mean: Array, variance: Array) -> Array:
        """P(y = c) (S, C) where the latent functions are N(mean, variance), both (S, C).

        The sum over classes is 1 up to the error of the quadrature, below 1e-8.

        Source: villacampa2017 eqs (11) and (68).
        """
        largest = probabilities(mean, variance + self.noise)
        return (1 - self.epsilon) * largest + self.epsilon / (self.classes - 1) * (1 - largest)

    def log_predictive(self, y: np.ndarray, mean: Array, variance: Array) -> Array:
        """log P(y) (S,) of labels y (S,), latent functions N(mean, variance), both (S, C)."""
        return self.log_moment(y, mean.T, variance.T, 1.0)[0]

    def validate(self, y: ArrayLike) -> np.ndarray:
        """y as int in 0 ... C − 1, or ValueError."""
        return check_labels(check_finite(as_real(y, "y"), "y"), self.classes)


def check_labels(y: Array, C: int) -> np.ndarray:
    """Labels y (N,) as int, or ValueError if they are not whole numbers in 0 ... C − 1."""
    wrong = (y < 0) | (y >= C) | (y != np.floor(y))
    if wrong.any():
        hint = "labels that count from 1 become right with y - 1" if y.min() >= 1 else "number the classes from 0"
        raise ValueError(f"y holds {y[wrong][0]:g}, expected whole numbers 0 ... {C - 1}, the labels of {C} classes; "
                         f"{hint}")
    return y.astype(int)


def check_wrong(epsilon: ArrayLike, alpha: float = 1.0) -> float:
    """Check epsilon, the probability of a wrong label: one number in [0, 1), and not 0 at alpha = 0."""
    value = as_real(epsilon, "epsilon")
    if value.ndim or not 0 <= value < 1:
        raise ValueError(f"epsilon = {epsilon!r} must be one number in [0, 1), the probability of a wrong label")
    if alpha == value == 0:
        raise ValueError("alpha = 0 needs epsilon > 0: a factor that can be 0 has no expected logarithm; give 0.001")
    return float(value)
