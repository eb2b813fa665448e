"""The likelihood of many classes: the label is the largest latent function, unless it is wrong."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import Array
from pepcore.multiclass.checks import check_expected_logarithm, check_labels
from pepcore.multiclass.factors import Joint
from pepcore.multiclass.quadrature import probabilities
from pepcore.validation import as_real, check_all_not_negative, check_count, check_finite


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
        epsilon = as_real(self.epsilon, "epsilon")
        if epsilon.ndim or not 0 <= epsilon < 1:
            raise ValueError(f"epsilon = {self.epsilon!r} must be one number in [0, 1), the probability of a wrong label")
        if self.classes < 2:
            raise ValueError(f"classes = {self.classes} must be at least 2")
        noise = check_all_not_negative(self.noise, "noise")
        if noise.shape not in ((), (self.classes,)):
            raise ValueError(f"noise has shape {noise.shape}, expected one number or shape ({self.classes},)")
        object.__setattr__(self, "epsilon", float(epsilon))
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
        check_expected_logarithm(alpha, self.epsilon)
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
