"""Learning hyper-parameters and pseudo-inputs: `fit` with L-BFGS on all data, `fit_minibatch` with Adam on parts of them."""

from pepcore.training.lbfgs import fit
from pepcore.training.minibatch import fit_minibatch
from pepcore.training.starts import choose_pseudo_inputs, default_kernel

__all__ = ["choose_pseudo_inputs", "default_kernel", "fit", "fit_minibatch"]
