"""Power expectation propagation for sparse Gaussian processes, in NumPy and SciPy.

`features` turns a kernel and M pseudo-inputs into features A (M, N) and residual variances h (N,); everything else
works on those. Begin with `power_ep.regression`, `exact.infer` or `training.fit`.
"""

__version__ = "0.1.0"
