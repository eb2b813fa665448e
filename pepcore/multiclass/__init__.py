"""Sparse multi-class classification: EP, stochastic EP, generalised FITC and variational inference.

Class c has a latent function f_c with its own kernel and pseudo-inputs, or all share them, plus Gaussian noise; the
label is the class whose noisy function is largest. All give independent Gaussian posteriors and use the one update
of `pepcore.sites`; they differ in the factors and in what is stored.

| approximation | factors | stored |
| --- | --- | --- |
| "ep" | for each datum and rival Φ((f_y − f_k)/√(noise_y + noise_k)) | 4 (C − 1) N numbers |
| "sep" | the same | C (M² + M) numbers |
| "gfitc" | for each datum [f_y + noise is the largest], or its robust version if epsilon > 0 | 2 C N numbers |
| "vi" | as "gfitc" with alpha = 0 and epsilon = 0.001 (C − 1)/C | 2 C N numbers |
"""

from pepcore.multiclass.factors import RobustMax
from pepcore.multiclass.inference import MulticlassFit, infer
from pepcore.multiclass.learning import fit
from pepcore.multiclass.minibatch import fit_minibatch

__all__ = ["MulticlassFit", "RobustMax", "fit", "fit_minibatch", "infer"]
