"""A Gaussian process on basis vectors that come and go, every step in O(M²).

It keeps both of the parametrisations of `pepcore.projection`: multiplying a site in or out is one rank-one change of
each, (α, C) answers for predictions, and (Λ̂, b) stay accurate however long the stream, so the rest is computed afresh
from them every so often.
"""

import numpy as np
from scipy.linalg import blas

from pepcore.features import Basis
from pepcore.gaussian import log_determinant, safe_cholesky, solve_lower
from pepcore.projection import lemma_parameters, posterior_from_sites, whitened
from pepcore.sites import ImproperCavityError

FIRST_SLOTS = 32  # of a process without a budget; doubled when they are full
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

    def with_room(self, budget, columns):
        """A copy to learn inputs of so many columns with: one slot more than the budget, or some to be doubled."""
        slots = max(FIRST_SLOTS, 2 * self.slots) if budget is None else budget + 1
        return self.resized(slots) if self.slots else Process(self.kernel, columns, slots)

    def compact(self):
        """A copy without free slots."""
        return self.resized(len(self.used))

    def posterior(self):
        """The book's Posterior."""
        used = self.used
        return posterior_from_sites(self.kernel, self.Z[used], self.precision[np.ix_(used, used)], self.shift[used])

    def log_evidence(self):
        """log ∫ N(v; 0, I) Π c_n t_n dv: the sites' heights, and the posterior's log-normaliser less the prior's."""
        posterior = self.posterior()
        R = posterior.precision_cholesky
        white = R.T @ posterior.mean
        return float(self.log_height + 0.5 * (white @ white - log_determinant(R)))

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
        mean, R = whitened(L, self.precision[square], self.shift[used])
        self.alpha[used], self.C[square] = lemma_parameters(L, mean, R)

    def sum_sites(self, sites):
        """Λ̂ = PᵀΛP and b = Pᵀν afresh from `DirectedSites`; source: csato2002 eqs (126) and (128)."""
        self.precision[:] = sites.P.T @ (sites.P * sites.tau[:, None])
        self.shift[:] = sites.P.T @ sites.nu
        self.log_height = float(sites.log_heights.sum())
        self.refresh()
