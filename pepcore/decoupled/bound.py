"""The variational bound of a decoupled process, exact or from a mini-batch, and its derivatives.

ELBO = Σ_n E_q[log p(y_n|f(x_n))] − KL(q ‖ p). The expectation is the likelihood's l_α at α = 0, with derivatives d1 in
the mean and ½ d2 in the variance. Everything about the data is summed in one pass over blocks of rows, O(N (G + M²))
time and O(G + M) memory a row of a block; nothing about gamma is cubic or needs a (G, G) array if columns are sampled.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pepcore.decoupled.bases import Bases, Process, located
from pepcore.features import accumulate, add_up, cholesky_pull_back, grouped, row_blocks
from pepcore.gaussian import Array, add_gram, multiply_lower, solve_lower, symmetric

BLOCK_ELEMENTS = 2**19  # numbers in K(x, points) of a block: 4 MiB, since products of few columns with (M, M) matrices are slow


class DataTerm(NamedTuple):
    """Derivatives of Σ_n E[log p] for one latent function, each datum counted `weight` times."""

    dw: Array  # (M,), A d1
    dg: Array  # (G,), K_γx d1
    curvature: Array  # (M, M), A diag(d2) Aᵀ, twice the derivative in V


class Bound(NamedTuple):
    """The ELBO, its derivatives, and what the natural gradients need; tuples for several latent functions."""

    value: float
    gradient: dict  # over the parametrisation's fields; also kernel, "gamma", "beta", likelihood if asked for
    data: Any  # DataTerm
    process: Any


def data_terms(
    bases: Bases, processes: tuple, X: Array, y: Array, likelihood: Any, *,
    weight: float = 1.0, stored: Callable | None = None, hyper: bool = False,
) -> tuple[float, tuple, dict]:
    """One pass over rows X (N, D), y (N,), for C latent functions that share the bases.

    `processes` is a tuple of C Process. `stored` takes rows to (A, h, K_γx), as `StoredRows` does; None computes these
    from X, as `hyper` does in any case. Returns Σ_n E[log p], a tuple of C DataTerm, and a dict, empty unless `hyper`,
    of derivatives in the kernel's parameters, "points" (G + M, D) and the likelihood's own, at fixed L and processes.
    """
    M, G = len(bases.beta), len(bases.gamma)
    w, g = np.stack([q.w for q in processes]), np.stack([q.g for q in processes])
    V = [process.V for process in processes] if hyper else []
    pull_back: Any = _HyperGradient(bases, processes, likelihood) if hyper else None
    bases.L_inverse  # noqa: B018 - computed here, once, and not by every thread

    def block(rows: slice) -> tuple:
        if hyper:
            K, vjp = bases.kernel.value_and_vjp(X[rows], bases.points)
            A, h, K_gamma = located(bases, X[rows], K.T)
            VA = [(A.T @ each).T for each in V]  # in Fortran order, as A
            variance = h + np.stack([np.einsum("mb,mb->b", A, part) for part in VA])
        else:
            A, h, K_gamma = stored(rows) if stored else located(bases, X[rows])
            variance = np.stack([process.variance(A, h) for process in processes])
        mean = w @ A + g @ K_gamma
        l, d1, d2 = _log_moment(likelihood, y[rows], mean, variance)
        d1, d2 = weight * d1, weight * d2
        curvatures = {c: _weighted_gram(A, bend) for c, bend in enumerate(d2)}
        gradient = pull_back(vjp, X[rows], y[rows], mean, variance, A, VA, d1, d2, weight) if hyper else {}
        return weight * l.sum(), d1 @ A.T, d1 @ K_gamma.T, curvatures, gradient

    blocks = row_blocks(len(X), M + G, BLOCK_ELEMENTS)
    sums = partial(add_up, block, effort=0)  # a group is the work of one thread
    value, dw, dg, curvatures, gradient = add_up(sums, grouped(blocks), effort=len(X) / len(blocks) * M * (M + G))
    terms = tuple(map(DataTerm, dw, dg, map(symmetric, curvatures.values())))
    return float(value), terms, gradient


def _log_moment(likelihood: Any, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """E[log p] (B,) and its derivatives (C, B) in means (C, B); a likelihood of one latent function knows no axis C."""
    if len(mean) > 1:
        return likelihood.log_moment(y, mean, variance, 0.0)
    l, d1, d2 = likelihood.log_moment(y, mean[0], variance[0], 0.0)
    return l, d1[None], d2[None]


def _weighted_gram(A: Array, weights: Array) -> Array:
    """The lower triangle of A diag(weights) Aᵀ (M, M).

    Columns with weights of one sign form a matrix times its own transpose, in half the time of a general product.
    """
    total = np.zeros((len(A), len(A)), order="F")
    for sign in (-1.0, 1.0):
        chosen = sign * weights > 0
        if np.any(chosen):
            part = A if np.all(chosen) else np.asfortranarray(A[:, chosen])
            add_gram(total, part * np.sqrt(sign * weights[chosen]), sign)
    return total


class _HyperGradient:
    """Derivatives of the data term in the kernel and the points, through K(points, x) and k(x, x) at fixed L, w, g, V."""

    def __init__(self, bases: Bases, processes: tuple, likelihood: Any) -> None:
        self.bases, self.likelihood = bases, likelihood
        slopes = [np.concatenate([q.g, solve_lower(bases.L, q.w, transposed=True)]) for q in processes]
        self.slopes = np.stack(slopes, axis=1)  # (G + M, C)

    def __call__(
        self, vjp: Callable, X: Array, y: Array, mean: Array, variance: Array, A: Array, VA: list, d1: Array, d2: Array,
        weight: float,
    ) -> dict:
        """Derivatives from a block of rows: at fixed k(x, x), dF/dA = w d1ᵀ + (V − I) A diag(d2), summed over latent functions.

        K_βx = L A; `vjp` takes derivatives back through K(x, points).
        """
        kernel, G = self.bases.kernel, len(self.bases.gamma)
        # an outer product is twice as fast as the same product of matrices
        dK = (d1[0][:, None] * self.slopes[:, 0] if len(d1) == 1 else d1.T @ self.slopes.T).T
        bent = A * -d2.sum(axis=0)
        for part, bend in zip(VA, d2, strict=True):
            bent += part * bend
        dK[G:] += multiply_lower(self.bases.L_inverse, bent, transposed=True)
        dkernel, _, dpoints = vjp(dK.T, first=False, second=True)
        gradient = dkernel | {"points": dpoints}
        accumulate(gradient, kernel.diagonal_vjp(X, 0.5 * d2.sum(axis=0)))
        if self.likelihood.parameters:
            own = self.likelihood.parameter_gradient(y, mean[0], variance[0], 0.0)
            accumulate(gradient, {key: weight * float(np.sum(part)) for key, part in own.items()})
        return gradient


def kl_divergence(bases: Bases, process: Process, columns: np.ndarray | None = None) -> float:
    """KL(q ‖ p) in nats, ½(|μ|² + tr V − log|V| − M) with |μ|² = |w|² + 2 wᵀA_γg + gᵀK_γg the squared norm of the mean.

    Columns (C,) of K_γ, drawn uniformly, give an unbiased estimate of gᵀK_γg that costs O(G C), not O(G²).

    Source: salimbeni2018 proposition A.1 and appendix A.3; :eq:`og-kl`.
    """
    return _kl_divergence(process, bases.project(process.g), bases.gamma_product(process.g, columns))


def _kl_divergence(process: Process, projected: Array, product: Array) -> float:
    w, g = process.w, process.g
    square = w @ w + 2 * w @ projected + g @ product
    return float(0.5 * (square + (process.root**2).sum() - process.log_determinant - len(w)))


def bound(
    bases: Bases, parameters: Any, X: Array, y: Array, likelihood: Any, *,
    weight: float = 1.0, columns: np.ndarray | None = None, stored: Callable | None = None, hyper: bool = False,
    roots: bool = True,
) -> Bound:
    """The ELBO of rows X (N, D), y (N,), each counted `weight` times, and its gradient.

    Parameters
    ----------
    parameters : Hybrid, OrthogonalWeights, Orthogonal or Decoupled; a tuple of C of them for a likelihood of C latent functions
    weight : float, number of all data over N for an unbiased estimate from a mini-batch
    columns : as in `kl_divergence`
    stored : as in `data_terms`
    hyper : bool, whether to take derivatives in the kernel's parameters, gamma, beta and the likelihood's parameters too
    roots : bool, whether to take derivatives in S_root, which natural steps do without

    Returns
    -------
    Bound; its gradient is in natural units and holds the parametrisation's own fields still when the kernel changes. For a
    tuple the derivatives in the fields are stacked, those in the rest are sums.

    Source: salimbeni2018 eq. (4) and appendix A; :eq:`og-bound`.
    """
    outputs = parameters if isinstance(parameters, tuple) else (parameters,)
    processes = tuple(output.process(bases) for output in outputs)
    value, terms, shared = data_terms(bases, processes, X, y, likelihood, weight=weight, stored=stored, hyper=hyper)
    gradient: Any = _HyperTotal(bases, columns, shared) if hyper else None
    K_columns = gradient.K_columns if hyper else None
    fields = []
    for output, process, data in zip(outputs, processes, terms, strict=True):
        projected, product = bases.project(process.g), bases.gamma_product(process.g, columns, K_columns)
        value -= _kl_divergence(process, projected, product)
        dw = data.dw - process.w - projected
        dg = data.dg - bases.project_transposed(process.w) - product
        dV = 0.5 * (data.curvature - np.eye(len(dw)))  # without the part of ½ log|V|
        VdV = process.V @ dV if hyper else None
        pulled = output.pull_back(bases, process, dw, dg, dV if roots else None, VdV)
        fields.append(pulled.parameters)
        if hyper:
            gradient.add(process, data.dw, dV, VdV, pulled, projected)
    if isinstance(parameters, tuple):
        own = {name: np.stack([part[name] for part in fields]) for name in fields[0]}
        return Bound(value, own | (gradient.result() if hyper else {}), terms, processes)
    return Bound(value, fields[0] | (gradient.result() if hyper else {}), terms[0], processes[0])


class _HyperTotal:
    """Derivatives in kernel and points: the data terms through K(points, x), the rest through L, K_βγ and K_γ."""

    def __init__(self, bases: Bases, columns: np.ndarray | None, shared: dict) -> None:
        self.bases, self.columns, self.gradient = bases, columns, dict(shared)
        self.points = self.gradient.pop("points")
        self.S = np.zeros_like(bases.L)
        self.dK_cross = np.zeros((len(bases.beta), len(bases.gamma)))
        self.gammas: list = []
        self.K_columns = None
        self.vjp_columns: Any = None
        if columns is not None and len(bases.gamma):
            self.K_columns, self.vjp_columns = bases.kernel.value_and_vjp(bases.gamma, bases.gamma[columns])

    def add(self, process: Process, dw: Array, dV: Array, VdV: Array, pulled: Any, projected: Array) -> None:
        # dF/dA_γ = u gᵀ: from w through the parametrisation, and from −wᵀA_γg in the KL divergence
        u = pulled.u - process.w
        # dF/dA Aᵀ = w dwᵀ + (V − I) curvature, and curvature = 2 dV + I
        through_A = VdV - dV
        through_A *= 2
        through_A += process.V
        through_A[np.diag_indices_from(through_A)] -= 1
        self.S += through_A
        self.S += pulled.S
        self.S += np.column_stack([process.w, u]) @ np.stack([dw, projected])
        self.dK_cross += np.outer(solve_lower(self.bases.L, u, transposed=True), process.g)
        self.gammas.append(process.g)

    def result(self) -> dict:
        """dict over the kernel's and the likelihood's parameters, "gamma" (G, D) and "beta" (M, D)."""
        bases, gradient = self.bases, self.gradient
        kernel, beta, G = bases.kernel, bases.beta, len(bases.gamma)
        dgamma, dbeta = self.points[:G].copy(), self.points[G:].copy()
        dK_beta = cholesky_pull_back(partial(multiply_lower, bases.L_inverse, transposed=True), self.S)
        dkernel, half, _ = bases.vjp_beta(dK_beta.T)  # symmetric; transposed it lies in the order of K_β
        accumulate(gradient, dkernel)
        dbeta += 2 * half
        share = bases.basis.jitter * np.trace(dK_beta) / len(beta)
        accumulate(gradient, kernel.diagonal_vjp(beta, np.full(len(beta), share)))
        if G:
            dkernel, part, part_gamma = bases.cross_and_vjp[1](self.dK_cross, second=True)
            accumulate(gradient, dkernel)
            dbeta += part
            dgamma += part_gamma
            dgamma += self._norm_pull_back(np.stack(self.gammas))
        return gradient | {"gamma": dgamma, "beta": dbeta}

    def _norm_pull_back(self, g: Array) -> Array:
        """Derivative of −½ Σ_c g_cᵀK_γg_c in gamma (G, D), g (C, G); those in the kernel's parameters are accumulated."""
        gamma, columns = self.bases.gamma, self.columns
        if columns is None:
            dgamma = np.empty_like(gamma)
            for rows in row_blocks(len(gamma), len(gamma)):
                dkernel, half = self.bases.kernel.vjp(gamma[rows], gamma, -0.5 * g[:, rows].T @ g)
                accumulate(self.gradient, dkernel)
                dgamma[rows] = 2 * half
            return dgamma
        dK = -0.5 * len(gamma) / len(columns) * g.T @ g[:, columns]
        dkernel, dgamma, dchosen = self.vjp_columns(dK, second=True)
        accumulate(self.gradient, dkernel)
        np.add.at(dgamma, columns, dchosen)
        return dgamma
