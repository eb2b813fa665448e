"""The posterior that every method of this package returns, in the notation of any of the four papers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pepcore.features import KEPT_ELEMENTS, Basis, row_blocks
from pepcore.gaussian import Array, cholesky_inverse, log_determinant, safe_cholesky, solve_lower
from pepcore.threads import one_blas_thread
from pepcore.validation import as_generator, as_real, check_count, check_finite, check_inputs

ROUNDING = 1e-12  # of the prior variance, for each row: a covariance is wrong by less than a hundredth of it


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """q(v) = N(m, V) over the feature weights; f(x) = a(x)ᵀv + e(x), with e still at its prior.

    Source: :eq:`gp-posterior`, :eq:`gp-predict-sparse`.
    """

    basis: Basis
    mean: Array  #: (M,), m
    precision_cholesky: Array  #: (M, M) lower triangular C with C Cᵀ = V⁻¹

    def __post_init__(self) -> None:
        for values in (self.mean, self.precision_cholesky):  # the gradient of a fit is computed from them later
            values.setflags(write=False)

    @one_blas_thread
    def predict(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and variance (S,) of the latent f at Xs (S, D).

        mean(x) = a(x)ᵀm,  variance(x) = h(x) + a(x)ᵀV a(x). Many rows are predicted in blocks, to save memory.
        """
        Xs = self._check(Xs)
        mean, variance = np.empty((2, len(Xs)))
        for rows in row_blocks(len(Xs), len(self.mean), KEPT_ELEMENTS):
            A, h = self.basis.features(Xs[rows])
            mean[rows] = A.T @ self.mean
            white = solve_lower(self.precision_cholesky, A)  # writes over A
            variance[rows] = h + np.einsum("ms,ms->s", white, white)
        return mean, variance

    def predict_full(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Mean (S,) and covariance (S, S) of the latent f at Xs (S, D): k(x, x') − aᵀa' + aᵀV a'."""
        Xs = self._check(Xs)
        A, _ = self.basis.features(Xs)
        mean = A.T @ self.mean
        covariance = self.basis.kernel(Xs) - A.T @ A
        white = solve_lower(self.precision_cholesky, A)
        covariance += white.T @ white
        # with almost no noise the variances at the data are nothing but rounding, of either sign
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
        return mean, covariance

    def sample(self, Xs: ArrayLike, size: int, rng: int | np.random.Generator) -> Array:
        """Draws (size, S) of the latent f at Xs (S, D), jointly over the rows.

        `rng` is a numpy Generator, or what numpy.random.default_rng accepts, such as an int as a seed.
        """
        Xs = self._check(Xs)
        size, draw = check_count(size, "size", least=0), as_generator(rng, "rng").standard_normal
        mean, covariance = self.predict_full(Xs)
        root = self._root(covariance, Xs)
        return mean + draw((size, len(mean))) @ root.T

    def log_density(self, Xs: ArrayLike, fs: ArrayLike) -> float | Array:
        """log N(fs; mean, covariance) in nats of the latent values fs (S,) or (T, S) at Xs (S, D), jointly."""
        Xs = self._check(Xs)
        mean, covariance = self.predict_full(Xs)
        fs = check_finite(as_real(fs, "fs"), "fs")
        if fs.shape[-1:] != mean.shape or fs.ndim > 2:
            raise ValueError(f"fs must have {len(mean)} values per row, one for each row of Xs; got shape {fs.shape}.")
        root = self._root(covariance, Xs)
        white = solve_lower(root, np.array((np.atleast_2d(fs) - mean).T, order="F"))
        value = -0.5 * ((white**2).sum(axis=0) + log_determinant(root) + len(mean) * np.log(2 * np.pi))
        return value if fs.ndim == 2 else float(value[0])

    def __repr__(self) -> str:
        M, D = self.basis.Z.shape
        return f"Posterior(M={M}, D={D}, {self.basis.kernel!r})"

    def whitened(self) -> tuple[Array, Array]:
        """m (M,) and V (M, M): the moments of v, which this package computes with; GPflow's `whiten=True`."""
        return self.mean.copy(), cholesky_inverse(self.precision_cholesky)

    def hensman(self) -> tuple[Array, Array]:
        """Mean (M,) and covariance (M, M) of u = L v. Source: hensman2013; :eq:`gp-clothes`."""
        m, V = self.whitened()
        return self.basis.L @ m, self.basis.L @ V @ self.basis.L.T

    def bui(self) -> tuple[Array, Array]:
        """γ = L⁻ᵀm (M,) and β = L⁻ᵀ(I − V)L⁻¹ (M, M): mean = k_uᵀγ, variance = k − k_uᵀβk_u.

        Source: bui2017 eqs (54) and (55); :eq:`gp-clothes`.
        """
        m, V = self.whitened()
        gamma = solve_lower(self.basis.L, m, transposed=True)
        half = solve_lower(self.basis.L, np.array(np.eye(len(m)) - V, order="F"), transposed=True)
        beta = solve_lower(self.basis.L, np.array(half.T, order="F"), transposed=True)
        return gamma, beta

    def csato(self) -> tuple[Array, Array]:
        """α = γ (M,) and C = −β (M, M): mean = k_uᵀα, variance = k + k_uᵀCk_u.

        Source: csato2002 section 4.1; :eq:`gp-clothes`.
        """
        gamma, beta = self.bui()
        return gamma, -beta

    def _check(self, Xs: ArrayLike) -> Array:
        return check_inputs(Xs, "Xs", columns=self.basis.Z.shape[1])

    def _root(self, covariance: Array, Xs: Array) -> Array:
        # a covariance of nothing but rounding needs a jitter of that size, not one relative to itself
        rounding = ROUNDING * len(covariance) * self.basis.kernel.diagonal(Xs).mean()
        scale = max(np.diag(covariance).mean(), rounding)
        L, _ = safe_cholesky(covariance, scale=scale, jitter=1e-10, name="predictive covariance")
        return L


@dataclass(frozen=True, eq=False, repr=False)
class Posteriors:
    """Independent posteriors of C latent functions; `posteriors[c]` is that of function c."""

    parts: tuple  #: C posteriors

    def __getitem__(self, c: int) -> Any:
        return self.parts[c]

    def __len__(self) -> int:
        return len(self.parts)

    def predict(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Means (S, C) and variances (S, C) of the latent functions at Xs (S, D)."""
        return _beside_each_other([part.predict(Xs) for part in self.parts])

    def predict_full(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """Means (S, C) and covariances (S, S, C) of the latent functions at Xs (S, D)."""
        return _beside_each_other([part.predict_full(Xs) for part in self.parts])

    def __repr__(self) -> str:
        return f"Posteriors({len(self.parts)} x {self.parts[0]!r})"


def _beside_each_other(moments: list) -> tuple[Array, Array]:
    """Means and (co)variances of all latent functions, from a pair for each; the last axis is over functions."""
    means, variances = (np.stack(values, axis=-1) for values in zip(*moments, strict=True))
    return means, variances
