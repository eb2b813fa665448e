"""The robust-max likelihood for inference with one variational posterior per class, sharing the bases."""

from dataclasses import dataclass

import numpy as np

from pepcore.multiclass.checks import check_labels
from pepcore.multiclass.factors import Joint
from pepcore.multiclass.quadrature import probabilities
from pepcore.validation import as_real, check_count, check_finite


@dataclass(frozen=True)
class RobustMax:
    """P(y|f) = 1 − ε if f_y is the largest of C latent functions, and ε/(C − 1) if it is not.

    Parameters
    ----------
    classes : int, C >= 2; labels are 0 ... C − 1
    epsilon : float, in (0, 1)

    Source: salimbeni2018 section 4.
    """

    classes: int
    epsilon: float = 1e-3

    def __post_init__(self):
        object.__setattr__(self, "classes", check_count(self.classes, "classes"))
        epsilon = as_real(self.epsilon, "epsilon")
        if epsilon.ndim or not 0 < epsilon < 1:
            raise ValueError(f"epsilon = {self.epsilon!r} must be one number in (0, 1), a probability")
        if self.classes < 2:
            raise ValueError(f"classes = {self.classes} must be at least 2")

    @property
    def parameters(self):
        """dict: empty, nothing is learnt."""
        return {}

    def with_parameters(self, parameters):
        """The same likelihood; `parameters` must be empty."""
        if parameters:
            raise ValueError(f"unknown likelihood parameters {sorted(parameters)}; RobustMax has none to learn.")
        return self

    def log_moment(self, y, mean, variance, alpha):
        """l_α (N,) and its first two derivatives in the means, d1 and d2 (C, N).

        Parameters
        ----------
        y : (N,) int
        mean, variance : (C, N) of the latent functions, which are independent; variance > 0
        alpha : float, in [0, 1]

        Source: villacampa2017 eqs (1), (3) and (13), whose ε is ours times C/(C − 1).
        """
        replaced = self.epsilon * self.classes / (self.classes - 1)
        tilted = Joint(y, self.classes, replaced).tilted(mean, variance, np.zeros(self.classes), alpha)
        return tilted.l, tilted.d1, tilted.d2

    def predict(self, mean, variance):
        """P(y = c) (S, C) where the latent functions are N(mean, variance), both (S, C)."""
        largest = probabilities(mean, variance)
        return (1 - self.epsilon) * largest + self.epsilon / (self.classes - 1) * (1 - largest)

    def log_predictive(self, y, mean, variance):
        """log P(y) (S,) of labels y (S,), latent functions N(mean, variance), both (S, C)."""
        return self.log_moment(y, mean.T, variance.T, 1.0)[0]

    def validate(self, y):
        """y as int in 0 ... C − 1, or ValueError."""
        return check_labels(check_finite(as_real(y, "y"), "y"), self.classes)
