"""Variational inference with decoupled bases: many points for the mean, few for the covariance.

M points beta carry the covariance, as the pseudo-points of a coupled sparse process do; G further points gamma refine
the mean alone. A step on a batch of B rows costs O(B M² + B G + G M + M³): gamma never enters cubed, so it can be
large.
"""

from pepcore.decoupled.bases import DecoupledPosterior
from pepcore.decoupled.inference import DecoupledFit, DivergenceError, infer

__all__ = ["DecoupledFit", "DecoupledPosterior", "DivergenceError", "infer"]
