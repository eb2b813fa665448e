"""One BLAS thread for the sparse routines.

They work on blocks that fit the processor's cache, so a second thread has nothing to do but wait, and NumPy's and SciPy's
own pools wait for each other: on two cores two threads took three to six times as long as one. Run independent fits in
parallel processes instead. `exact` is left alone, since its large factorisations do gain from more threads.
"""

import scipy.linalg  # noqa: F401 - loads the BLAS libraries, which the controller has to find
from threadpoolctl import ThreadpoolController

one_blas_thread = ThreadpoolController().wrap(limits=1, user_api="blas")  # a decorator; costs 12 microseconds a call
