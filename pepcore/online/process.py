"""A Gaussian process on a changing set of basis vectors, every step in O(M²).

It is kept in the coordinates of `pepcore.features`, v = Wu with K⁻¹ = WᵀW: the posterior N(m, V), whose V lies between
0 and I however close the basis vectors are, and the sum of the sites, Λ and b with V⁻¹ = I + Λ. The lemma's (α, C) and the EP
parameters of `pepcore.online.projection` have elements as large as those of K⁻¹; they are computed on request.

A new basis vector adds a coordinate to v, at its prior: nothing else changes. To remove one, v is rotated until the
part of f there that the other basis vectors do not determine is a coordinate of its own. That coordinate is then set to
zero: the posterior given v_j = 0 is the one with the least KL(pruned ‖ full).
"""

from typing import Self

import numpy as np
from scipy.linalg import blas

from pepcore.features import Basis
from pepcore.gaussian import Array, cholesky_inverse, inverse_lower, log_determinant
from pepcore.kernels.base import Kernel
from pepcore.online.projection import from_precision
from pepcore.posterior import Posterior
from pepcore.sites import rank_one_update

FIRST_SLOTS = 32  # of a process without a budget; doubled when they are full
FREE, GIVEN = -2, -1  # in `Process.rows`, for a slot without a basis vector, and for a basis vector that is no datum


class Process:
    """A GP on basis vectors that come and go, changed in place.

    The arrays have a slot for every basis vector that may come, with its own coordinate of v. Rows and columns of free
    slots are zero in all arrays, so these can be multiplied as they are; nothing is ever shifted.
    """

    kernel: Kernel
    Z: Array  # (S, D), basis vectors by slot
    rows: np.ndarray  # (S,), number of the datum in each slot; GIVEN or FREE
    W: Array  # (S, S), features a(x) = W k(x), so that v = Wu and K⁻¹ = WᵀW
    mean: Array  # (S,), m
    V: Array  # (S, S)
    precision: Array  # (S, S), Λ = Σ τ a aᵀ over the sites
    shift: Array  # (S,), b = Σ ν a
    log_height: float  # logarithm of the product of the sites' heights, from which the evidence follows
    q: Array  # (S,), diagonal of WᵀW; this and the next two are for the scores
    spread: Array  # (S,), diagonal of WᵀVW
    sharpness: Array  # (S,), diagonal of WᵀΛW

    MATRICES = ("W", "V", "precision")
    VECTORS = ("mean", "shift", "q", "spread", "sharpness")

    def __init__(self, kernel: Kernel, columns: int, slots: int) -> None:
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
    def fixed(cls, kernel: Kernel, Z: Array) -> Self:
        """The prior, on pseudo-inputs Z (M, D) that are no data."""
        process = cls(kernel, Z.shape[1], len(Z))
        process.Z[:], process.rows[:], process.W[:] = Z, GIVEN, inverse_lower(Basis.build(kernel, Z, jitter=0.0).L)
        process.refresh()
        return process

    # --- slots --------------------------------------------------------------------------------------------------------

    @property
    def used(self) -> np.ndarray:
        """Slots in use, (M,) indices."""
        return np.flatnonzero(self.rows != FREE)

    @property
    def slots(self) -> int:
        return len(self.rows)

    def free_slot(self) -> int | None:
        """A slot that is free, or None."""
        slot = int(self.rows.argmin())
        return slot if self.rows[slot] == FREE else None

    def resized(self, slots: int) -> "Process":
        """A copy with this number of slots, and the basis vectors in the order they have here."""
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

    def with_room(self, budget: int | None, columns: int) -> "Process":
        """A copy with room to learn: twice as many slots as here, at most budget + 1; `columns` is D."""
        slots = max(FIRST_SLOTS, 2 * self.slots)
        slots = slots if budget is None else min(slots, budget + 1)
        return self.resized(slots) if self.slots else Process(self.kernel, columns, slots)

    def compact(self) -> "Process":
        """A copy without free slots."""
        return self.resized(len(self.used))

    # --- what the process says ----------------------------------------------------------------------------------------

    @property
    def alpha(self) -> Array:
        """α = Wᵀm (S,); source: csato2002 eq. (106); :eq:`cs-process`."""
        return self.W.T @ self.mean

    @property
    def C(self) -> Array:
        """C = −Wᵀ(I − V)W (S, S); source: csato2002 eq. (106); :eq:`cs-process`."""
        inside = self.V.copy()
        inside[self.used, self.used] -= 1.0
        return self.W.T @ inside @ self.W

    def posterior(self) -> Posterior:
        """The Posterior, whose coordinates have a triangular W."""
        used = self.used
        basis = Basis.build(self.kernel, self.Z[used], jitter=0.0)
        turn = self.W[np.ix_(used, used)] @ basis.L  # orthogonal
        precision = turn.T @ self.precision[np.ix_(used, used)] @ turn
        return Posterior(basis, *from_precision(precision, turn.T @ self.shift[used]))

    def log_evidence(self) -> float:
        """log ∫ N(v; 0, I) Π c_n t_n dv: the sites' heights, and the posterior's log-normaliser less the prior's."""
        used = self.used
        m, R = from_precision(self.precision[np.ix_(used, used)], self.shift[used])
        return float(self.log_height + 0.5 * (((R.T @ m) ** 2).sum() - log_determinant(R)))

    def scores(self) -> Array:
        """KL(pruned ‖ full) (S,) in nats that removing each basis vector would cost; no slot may be free.

        ½ [Λ_jj + log V_jj + m_j²/V_jj] in the coordinate j that would be set to zero.

        Source: csato2002 section 4.6, there without derivation; :eq:`cs-score`, :eq:`cs-score-all`.
        """
        sharpness = self.sharpness / self.q
        # no variance is below the inverse of the precision, but rounding may say so
        V = np.maximum(self.spread / self.q, 1 / (1 + sharpness))
        return 0.5 * (sharpness + np.log(V) + self.alpha**2 / (self.q * V))

    # --- what changes it ----------------------------------------------------------------------------------------------

    def multiply(self, a: Array, tau: float, nu: float, Va: Array, mean: float, variance: float) -> None:
        """Multiply in the factor exp(ν aᵀv − ½ τ (aᵀv)²); with −τ and −ν it is divided out.

        With τ = −r/(1 + rσ²) and ν = τ(m − q/r) the change is m + q Va and V + r Va aᵀV, the online update. `a` and Va
        are (S,), mean and variance > 0 the moments aᵀm and aᵀVa of aᵀv.

        Source: csato2002 eqs (107), (115) and (131); :eq:`cs-online`, :eq:`cs-delete`.
        """
        rank_one_update(self.mean, self.V, Va, mean, variance, tau=tau, nu=nu)
        blas.dger(tau, a, a, a=self.precision, overwrite_a=1)
        self.shift += nu * a
        self.spread -= tau / (1 + tau * variance) * (Va @ self.W) ** 2
        self.sharpness += tau * (a @ self.W) ** 2

    def include(self, slot: int, x: Array, row: int, a: Array, novelty: float) -> None:
        """Put the new basis vector x (D,), datum number `row`, into the free `slot`; the process itself does not change.

        `a` (S,) are the features of x before, novelty is γ = k(x, x) − |a|² > 0; afterwards a[slot] is √γ.

        Source: csato2002 section 4.6; :eq:`cs-span`.
        """
        self.Z[slot], self.rows[slot] = x, row
        added = -(a @ self.W) / np.sqrt(novelty)  # v_new = (f(x) − aᵀv)/√γ = (f(x) − aᵀWu)/√γ
        added[slot] = 1 / np.sqrt(novelty)
        self.W[slot] = added
        self.V[slot, slot] = 1.0
        self.q += added**2
        self.spread += added**2

    def prune(self, slot: int) -> Array | None:
        """Remove the basis vector in `slot` with the least KL(pruned ‖ full).

        Returns h (S,), by which the directions of sites turn to a − 2 (aᵀh) h, or None where they stay. Afterwards
        a[slot] must be set to zero.
        Source: csato2002 eqs (77), (79), (126) and (128); :eq:`cs-condition`, :eq:`cs-marginal`.
        """
        h = self._turn(slot)
        last, V_column, sharp_column = self.W[slot].copy(), self.V[:, slot].copy(), self.precision[:, slot].copy()
        V, own = V_column[slot], sharp_column[slot]
        self.q -= last**2
        self.spread -= (V_column @ self.W) ** 2 / V
        self.sharpness -= 2 * last * (sharp_column @ self.W) - own * last**2

        self.mean -= V_column * (self.mean[slot] / V)  # the conditional of a Gaussian, given v_slot = 0
        blas.dger(-1 / V, V_column, V_column, a=self.V, overwrite_a=1)
        self.log_height -= 0.5 * own  # each site's −½ τ (aᵀv)² is replaced by its mean over the prior of v_slot
        for name in self.MATRICES:
            matrix = getattr(self, name)
            matrix[slot], matrix[:, slot] = 0.0, 0.0
        for name in self.VECTORS:
            getattr(self, name)[slot] = 0.0
        self.rows[slot] = FREE
        return h

    def _turn(self, slot: int) -> Array | None:
        """Reflect v so that its coordinate `slot` is the part of f at this basis vector that the others do not determine.

        That is the direction W[:, slot]: along it u = W⁻¹v changes in this slot alone.
        """
        h = self.W[:, slot] / np.linalg.norm(self.W[:, slot])
        if abs(h[slot]) >= 1:  # the newest basis vector: its coordinate is the last one that came
            return None
        h[slot] += np.copysign(1.0, h[slot])
        h /= np.linalg.norm(h)
        blas.dger(-2.0, h, h @ self.W, a=self.W, overwrite_a=1)
        self.mean -= 2 * (h @ self.mean) * h
        self.shift -= 2 * (h @ self.shift) * h
        for matrix in (self.V, self.precision):  # HXH with H = I − 2hhᵀ
            Xh = matrix @ h
            z = 2 * (Xh - (h @ Xh) * h)
            blas.dger(-1.0, h, z, a=matrix, overwrite_a=1)
            blas.dger(-1.0, z, h, a=matrix, overwrite_a=1)
        return h

    def refresh(self) -> Array:
        """Compute everything afresh from the basis vectors, Λ and b, so that rounding errors do not pile up.

        Returns the turn (S, S), orthogonal on the slots in use: directions of sites become a @ turn.
        """
        self.age = 0
        used = self.used
        square = np.ix_(used, used)
        turn = np.zeros_like(self.W)
        if not len(used):
            return turn
        L = Basis.build(self.kernel, self.Z[used], jitter=0.0).L
        turn[square] = self.W[square] @ L
        self.precision[:], self.shift[:] = turn.T @ self.precision @ turn, self.shift @ turn
        self.W[square] = inverse_lower(L)
        self.mean[used], R = from_precision(self.precision[square], self.shift[used])
        self.V[square] = cholesky_inverse(R)
        self.q[:] = (self.W**2).sum(axis=0)
        self.spread[:] = (self.W * (self.V @ self.W)).sum(axis=0)
        self.sharpness[:] = (self.W * (self.precision @ self.W)).sum(axis=0)
        return turn
