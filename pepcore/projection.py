"""A Gaussian process on a set of basis vectors that comes and goes: csato2002's parametrisations and projections.

With M basis vectors, K (M, M) the prior covariance of f there and k = k_u(x), the process is written in two ways:

* (α, C), of the parametrisation lemma: mean kᵀα and variance k(x, x) + kᵀC k;
* (Λ̂, b), of EP: the prior times exp(bᵀu − ½ uᵀΛ̂u) with Λ̂ = PᵀΛP and b = PᵀΛa. Datum n contributed the site
  exp(ν_n u_n − ½ τ_n u_n²), τ = λ and ν = λa, of the one number u_n = p_nᵀu; p_n is the row of P that writes what the
  site knows of f(x_n) in terms of f at the basis vectors.

A `Process` keeps both, so that every step costs O(M²): multiplying a site in or out is one rank-one change of each,
(α, C) answers for predictions, and (Λ̂, b) stay accurate however long the stream, so the rest is computed afresh from
them every so often.
"""

import numpy as np
from scipy.linalg import blas

from pepcore.features import Basis
from pepcore.gaussian import safe_cholesky, solve_lower
from pepcore.posterior import Posterior
from pepcore.sites import ImproperCavityError


def natural_parameters(K, tau, nu, P=None):
    """(α, C) of the process that sites make: α = (I + Λ̂K)⁻¹b and C = −(I + Λ̂K)⁻¹Λ̂, Λ̂ = Pᵀ diag(τ) P, b = Pᵀν.

    Parameters
    ----------
    K : (M, M) prior covariance at the basis vectors, positive definite
    tau : (N,) site precisions λ >= 0
    nu : (N,) site precision-means λa
    P : (N, M) directions of the sites; by default the identity, every datum a basis vector

    Returns
    -------
    alpha (M,), C (M, M)

    Source: csato2002 eqs (121) and (130), without the inverse of Λ, which need not exist.
    """
    P = np.eye(len(K)) if P is None else P
    L, _ = safe_cholesky(K, scale=np.diag(K).mean(), name="K")
    precision = P.T @ (P * np.asarray(tau)[:, None])
    return _lemma_parameters(L, *_whitened(L, precision, P.T @ nu))


def site_parameters(K, alpha, C):
    """Λ̂ = −(I + CK)⁻¹C and b = (I + CK)⁻¹α, the inverse of `natural_parameters`.

    Without projections Λ̂ is diagonal: τ stands there, and b is ν. After a projection N sites cannot be told from
    M(M + 1)/2 numbers any more.

    Parameters
    ----------
    K : (M, M)
    alpha : (M,)
    C : (M, M)

    Returns
    -------
    precision (M, M), shift (M,)

    Source: csato2002 eq. (122).
    """
    both = np.linalg.solve(np.eye(len(K)) + C @ K, np.column_stack([C, alpha]))
    return -0.5 * (both[:, :-1] + both[:, :-1].T), both[:, -1].copy()


def posterior_from_natural(kernel, Z, alpha, C):
    """The book's posterior from (α, C) on the basis vectors Z (M, D); `Posterior.csato` goes the other way.

    Source: csato2002 eqs (106) and (122).
    """
    return posterior_from_sites(kernel, Z, *site_parameters(kernel(Z), alpha, C))


def posterior_from_sites(kernel, Z, precision, shift):
    """The book's posterior from Λ̂ (M, M) and b (M,) on the basis vectors Z (M, D): V⁻¹ = I + LᵀΛ̂L, m = V Lᵀb."""
    basis = Basis.build(kernel, Z, jitter=0.0)
    return Posterior(basis, *_whitened(basis.L, precision, shift))


def _whitened(L, precision, shift):
    """m (M,) and the Cholesky factor (M, M) of V⁻¹, for v = L⁻¹u."""
    R, _ = safe_cholesky(np.eye(len(L)) + L.T @ precision @ L, name="I + LᵀΛL")
    return solve_lower(R, solve_lower(R, L.T @ shift), transposed=True), R


def _lemma_parameters(L, mean, R):
    """α = L⁻ᵀm and C = −L⁻ᵀ(I − V)L⁻¹."""
    alpha = solve_lower(L, mean, transposed=True)
    half = solve_lower(R, np.eye(len(R), order="F"))
    half = solve_lower(L, np.array(np.eye(len(R)) - half.T @ half, order="F"), transposed=True)
    return alpha, -solve_lower(L, np.array(half.T, order="F"), transposed=True)


FREE, GIVEN = -2, -1  # what stands in `Process.rows` for a slot without basis vector, and for one that is no datum


class Process:
    """A GP on basis vectors that come and go, changed in place, every change in O(M²).

    The arrays have a slot for every basis vector that may come. Rows and columns of free slots are zero in all of them,
    so that they can be multiplied as they are; nothing is ever shifted.

    Attributes
    ----------
    Z : (S, D) basis vectors, by slot
    rows : (S,) number of the datum in each slot; GIVEN or FREE
    K, Q : (S, S), prior covariance and its inverse
    alpha, C : (S,), (S, S), the parameters of the lemma
    precision, shift : (S, S), (S,), Λ̂ = PᵀΛP and b = PᵀΛa
    log_height : float
        Logarithm of the product of the sites' heights, from which the evidence follows.
    """

    MATRICES = ("K", "Q", "C", "precision")
    VECTORS = ("alpha", "shift")

    def __init__(self, kernel, columns, slots):
        self.kernel = kernel
        self.Z = np.zeros((slots, columns))
        self.rows = np.full(slots, FREE)
        self.log_height = 0.0
        self.age = 0  # steps since everything was last computed afresh
        for name in self.MATRICES:
            setattr(self, name, np.zeros((slots, slots), order="F"))
        for name in self.VECTORS:
            setattr(self, name, np.zeros(slots))

    @classmethod
    def fixed(cls, kernel, Z):
        """The prior, on pseudo-inputs Z (M, D) that are no data; K has the jitter that it needed, 0 if possible."""
        process = cls(kernel, Z.shape[1], len(Z))
        L = Basis.build(kernel, Z, jitter=0.0).L
        process.Z[:], process.K[:], process.rows[:] = Z, L @ L.T, GIVEN
        process.refresh()
        return process

    @property
    def used(self):
        """Slots in use, (M,) indices."""
        return np.flatnonzero(self.rows != FREE)

    @property
    def slots(self):
        return len(self.rows)

    def free_slot(self):
        """A slot that is free, or None."""
        slot = int(self.rows.argmin())
        return slot if self.rows[slot] == FREE else None

    def resized(self, slots):
        """A copy with so many slots; it takes the basis vectors in the order they have here."""
        used = self.used
        other = Process(self.kernel, self.Z.shape[1], slots)
        place = np.arange(len(used))
        other.Z[place], other.rows[place] = self.Z[used], self.rows[used]
        other.log_height, other.age = self.log_height, self.age
        for name in self.MATRICES:
            getattr(other, name)[np.ix_(place, place)] = getattr(self, name)[np.ix_(used, used)]
        for name in self.VECTORS:
            getattr(other, name)[place] = getattr(self, name)[used]
        return other

    def multiply(self, p, tau, nu, h, mean, variance):
        """Multiply the factor exp(ν pᵀu − ½ τ (pᵀu)²) in; with −τ and −ν it is divided out.

        With τ = −r/(1 + rσ²) and ν = τ(m − q/r) the change is α + q h and C + r h hᵀ, the online update.

        Parameters
        ----------
        p : (S,) direction
        tau, nu : float
        h : (S,), p + CKp
        mean, variance : float, the moments pᵀKα and pᵀKh > 0 of pᵀu

        Source: csato2002 eqs (107), (116), (131) and (132).
        """
        growth = 1 + tau * variance
        if not growth > 0:
            raise ImproperCavityError(
                f"the site with tau = {tau:.4g} leaves no proper posterior (1 + tau s = {growth:.3g}); "
                "the likelihood must be log-concave."
            )
        self.alpha += ((nu - tau * mean) / growth) * h
        blas.dger(-tau / growth, h, h, a=self.C, overwrite_a=1)
        blas.dger(tau, p, p, a=self.precision, overwrite_a=1)
        self.shift += nu * p

    def divide(self, p, tau, nu):
        """Divide the site (τ, ν) of direction p (S,) out; source: csato2002 eq. (132)."""
        Kp = self.K @ p
        h = p + self.C @ Kp
        self.multiply(p, -tau, -nu, h, Kp @ self.alpha, Kp @ h)

    def include(self, slot, x, row, k, prior, reach, novelty):
        """A new basis vector x (D,) takes a free slot; the process stays what it is.

        Parameters
        ----------
        slot : int, a free one
        x : (D,)
        row : int, its number among the data
        k : (S,) prior covariance with the other basis vectors
        prior : float, k(x, x)
        reach : (S,), ê = Qk
        novelty : float, γ = k(x, x) − kᵀê > 0

        Source: csato2002 section 4.6; K⁻¹ grows by a rank-one term.
        """
        self.Z[slot], self.rows[slot] = x, row
        self.K[slot], self.K[:, slot] = k, k
        self.K[slot, slot] = prior
        residual = reach.copy()
        residual[slot] = -1.0
        blas.dger(1 / novelty, residual, residual, a=self.Q, overwrite_a=1)

    def scores(self, slots=slice(None)):
        """KL(pruned ‖ full) in nats that removing each basis vector would cost.

        ½ [Λ̂_jj/q_j + log(1 + c_j/q_j) + α_j²/(q_j + c_j)] with q and c the diagonals of Q and C.

        Source: csato2002 section 4.6, there without derivation.
        """
        q, c, alpha = self.Q.diagonal()[slots], self.C.diagonal()[slots], self.alpha[slots]
        return 0.5 * (self.precision.diagonal()[slots] / q + np.log1p(c / q) + alpha**2 / (q + c))

    def prune(self, slot):
        """Remove the basis vector in `slot` with the least KL(pruned ‖ full), and return how directions change.

        (C + Q)⁻¹ and (C + Q)⁻¹α lose the slot's row and column, and Λ̂ and b are projected: wherever f at this basis
        vector stood, its prior mean given the others stands now.

        Returns
        -------
        drop : (S,)
            With p the old direction of a site, p − p[slot] · drop is the new one.
        residual : float, 1/q, prior variance of f at this basis vector given the others

        Source: csato2002 eqs (77), (79), (126) and (128).
        """
        Q_column, C_column, q = self.Q[:, slot].copy(), self.C[:, slot].copy(), self.Q[slot, slot]
        both = Q_column + C_column
        drop = Q_column / q

        self.alpha -= both * (self.alpha[slot] / both[slot])
        blas.dger(1 / q, Q_column, Q_column, a=self.C, overwrite_a=1)
        blas.dger(-1 / both[slot], both, both, a=self.C, overwrite_a=1)
        blas.dger(-1 / q, Q_column, Q_column, a=self.Q, overwrite_a=1)

        own = self.precision[slot, slot]
        cross = self.precision[:, slot] - 0.5 * own * drop
        blas.dger(-1.0, drop, cross, a=self.precision, overwrite_a=1)
        blas.dger(-1.0, cross, drop, a=self.precision, overwrite_a=1)
        self.shift -= drop * self.shift[slot]
        self.log_height -= 0.5 * own / q

        for name in self.MATRICES:  # zero but for rounding
            matrix = getattr(self, name)
            matrix[slot], matrix[:, slot] = 0.0, 0.0
        self.alpha[slot], self.shift[slot], self.rows[slot] = 0.0, 0.0, FREE
        return drop, 1 / q

    def refresh(self):
        """Compute Q, α and C afresh from K, Λ̂ and b, so that rounding does not pile up."""
        self.age = 0
        used = self.used
        if not len(used):
            return
        square = np.ix_(used, used)
        L, _ = safe_cholesky(self.K[square], scale=np.diag(self.K)[used].mean(), name="K")
        half = solve_lower(L, np.eye(len(L), order="F"))
        self.Q[square] = half.T @ half
        mean, R = _whitened(L, self.precision[square], self.shift[used])
        self.alpha[used], self.C[square] = _lemma_parameters(L, mean, R)

    def sum_sites(self, sites):
        """Λ̂ = PᵀΛP and b = Pᵀν afresh from `DirectedSites`; source: csato2002 eqs (126) and (128)."""
        self.precision[:] = sites.P.T @ (sites.P * sites.tau[:, None])
        self.shift[:] = sites.P.T @ sites.nu
        self.log_height = float(sites.log_heights.sum())
        self.refresh()
