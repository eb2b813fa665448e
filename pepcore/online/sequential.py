"""Learning one datum after another in a `Process`, for streams and for sparse EP alike."""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas

from pepcore.gaussian import Array
from pepcore.likelihoods.scalar import Likelihood
from pepcore.online.process import Process
from pepcore.results import refuse_gradient

NO_GRADIENT = partial(refuse_gradient, "csato2002's methods do not learn hyper-parameters, so there is no gradient of the "
                                       "evidence; learn them with training.fit and give the kernel that it returns")
LOST = 1e-8  # part of a variance that a site leaves, below which dividing the site out would leave mostly rounding
BLOCK = 128  # rows whose covariances with each other and with the basis vectors are computed together


class DirectedSites:
    """The sites of N data and their directions, changed in place.

    Attributes
    ----------
    tau, nu : (N,)
    A : (N, S), a_n in the coordinates of the process: the site is a function of a_nᵀv = p_nᵀu, and P = A W
    log_heights : (N,); log c_n of the site c_n exp(ν_n a_nᵀv − ½ τ_n (a_nᵀv)²), the projections' losses included
    """

    def __init__(self, size: int, slots: int) -> None:
        self.tau, self.nu, self.log_heights = np.zeros(size), np.zeros(size), np.zeros(size)
        self.A = np.zeros((size, slots), order="F")

    def project(self, slot: int, h: Array | None) -> None:
        """Turn the directions as `Process.prune` says, and leave out coordinate `slot`: P ← P P_N.

        −½ τ (aᵀv)² is replaced by its mean over the prior of the coordinate that is lost.

        Source: csato2002 eqs (126) and (129); :eq:`cs-direction`.
        """
        if h is not None:
            blas.dger(-2.0, self.A @ h, h, a=self.A, overwrite_a=1)
        lost = self.A[:, slot]
        self.log_heights -= 0.5 * self.tau * lost**2
        self.A[:, slot] = 0.0


class Learner:
    """Learns one datum after another, and changes the process.

    `budget`, `novelty` and `rho` are as in `online.infer`; `sites` remembers each datum's site, for EP, and None
    forgets them.
    """

    def __init__(
        self, process: Process, likelihood: Likelihood, budget: int | None, novelty: float, rho: float = 1.0,
        sites: DirectedSites | None = None,
    ) -> None:
        self.process, self.likelihood = process, likelihood
        self.sites: Any = sites
        self.budget, self.novelty, self.rho = budget, novelty, rho

    def sweep(self, X: Array, y: Array, order: Any, first: int = 0, moving: bool = True) -> dict:
        """Take in rows `order` of X (N, D) and y (N,); `first` is the number of row 0 among all data.

        If `moving`, basis vectors may come and go. Returns the dict "log_predictive", "change", "included", "removed",
        see `online.OnlineFit`; a basis vector that comes and goes in one visit counts as neither.
        """
        self.report = {"log_predictive": 0.0, "change": 0.0, "included": 0, "removed": 0}
        for begin in range(0, len(order), BLOCK):
            rows = order[begin : begin + BLOCK]
            self._open(X[rows])
            for i, row in enumerate(rows):
                self._visit(i, row, first + row, y[row : row + 1], moving)
                self.process.age += 1
                if self.process.age > max(self.process.slots, BLOCK):  # O(M³), done this rarely, is O(M²) for each datum
                    self._refresh()
        return self.report

    def sum_sites(self, without: int = -1) -> None:
        """Compute Λ and b afresh from the sites, perhaps without that of one row, and everything else from them.

        Source: csato2002 eqs (126) and (128).
        """
        process, sites = self.process, self.sites
        counted = np.arange(len(sites.tau)) != without
        process.precision[:] = sites.A.T @ (sites.A * (counted * sites.tau)[:, None])
        process.shift[:] = (counted * sites.nu) @ sites.A
        process.log_height = float(counted @ sites.log_heights)
        self._refresh()

    def _refresh(self) -> None:
        turn = self.process.refresh()
        if self.sites is not None:
            self.sites.A = np.asfortranarray(self.sites.A @ turn)

    def _open(self, X: Array) -> None:
        """Compute the prior covariances of a block of rows with the basis vectors, by slot, and with each other."""
        process = self.process
        self.X, self.prior = X, process.kernel.diagonal(X)
        self.between = process.kernel(X)
        self.k = np.zeros((len(X), process.slots))
        used = process.used
        if len(used):
            self.k[:, used] = process.kernel(X, process.Z[used])

    def _visit(self, i: int, row: int, number: int, y: Array, moving: bool) -> None:
        """Divide the datum's site out, compute it anew, multiply it in, keep to the budget.

        Source: csato2002 section 4.6; eqs (53), (57), (61), (107) and (114); :eq:`cs-q-r`, :eq:`cs-eta`.
        """
        self._forget(row)
        if moving and self.process.free_slot() is None:
            self._grow()
        process, prior = self.process, self.prior[i]
        a = process.W @ self.k[i]  # f(x) = aᵀv + a residual of variance γ
        Va, novelty = process.V @ a, max(prior - a @ a, 0.0)
        mean, spread = a @ process.mean, a @ Va
        variance = np.array([spread + novelty])
        l, d1, d2 = (float(d[0]) for d in self.likelihood.log_moment(y, np.array([mean]), variance, 1.0))

        newcomer: Any = None
        residual = novelty
        if moving and novelty > self.novelty * prior:
            newcomer = process.free_slot()
            process.include(newcomer, self.X[i], number, a, novelty)
            self.k[:, newcomer] = self.between[:, i]
            a[newcomer] = Va[newcomer] = math.sqrt(novelty)  # now the residual is a coordinate of v, at its prior
            spread, residual = spread + novelty, 0.0
        kept = self.rho * residual
        shrinkage = float(self.likelihood.shrinkage(d2, spread + kept, 1.0, residual - kept))
        tau, nu, log_height = _site(l, d1, d2, mean, spread, kept, shrinkage)
        process.multiply(a, tau, nu, Va, mean, spread)
        process.log_height += log_height
        self.report["log_predictive"] += l
        self._remember(row, tau, nu, log_height, a, spread)
        if newcomer is not None:
            self._keep_to_budget(newcomer)

    def _forget(self, row: int) -> None:
        """Divide the site of a datum out, if it has one; source: csato2002 eq. (131).

        Where a site is so sharp that this would leave mostly rounding, the others are multiplied anew; if all have τ >=
        0 their product is proper.
        """
        sites, process = self.sites, self.process
        if sites is None or not (sites.tau[row] or sites.nu[row]):
            return
        a, tau, nu = sites.A[row], sites.tau[row], sites.nu[row]
        Va = process.V @ a
        spread = a @ Va
        if 1 - tau * spread < LOST and sites.tau.min() >= 0:
            self.sum_sites(without=row)
        else:
            process.multiply(a, -tau, -nu, Va, a @ process.mean, spread)
            process.log_height -= sites.log_heights[row]

    def _remember(self, row: int, tau: float, nu: float, log_height: float, a: Array, spread: float) -> None:
        sites = self.sites
        if sites is None:
            return
        variance = spread / (1 + tau * spread)
        moved = max(abs(tau - sites.tau[row]) * variance, abs(nu - sites.nu[row]) * math.sqrt(variance))
        self.report["change"] = max(self.report["change"], float(moved))
        sites.tau[row], sites.nu[row], sites.log_heights[row], sites.A[row] = tau, nu, log_height, a

    def _keep_to_budget(self, newcomer: int) -> None:
        """If there is one basis vector too many, drop that of least score, perhaps the newcomer."""
        process, least = self.process, newcomer
        full = self.budget is not None and len(process.used) > self.budget
        if full:
            least = int(np.argmin(process.scores()))
            self.drop(least)
        self.report["included"] += not full or least != newcomer
        self.report["removed"] += full and least != newcomer

    def drop(self, slot: int) -> None:
        """Remove the basis vector in `slot`, from process and sites alike."""
        h = self.process.prune(slot)
        self.k[:, slot] = 0.0
        if self.sites is not None:
            self.sites.project(slot, h)

    def _grow(self) -> None:
        slots = 2 * self.process.slots
        slots = slots if self.budget is None else min(slots, self.budget + 1)
        more = slots - self.process.slots
        self.process = self.process.resized(slots)
        self.k = np.pad(self.k, ((0, 0), (0, more)))
        if self.sites is not None:
            self.sites.A = np.pad(self.sites.A, ((0, 0), (0, more)))


def _site(
    l: float, d1: float, d2: float, mean: float, spread: float, kept: float, shrinkage: float
) -> tuple[float, float, float]:
    """τ, ν and log height of the site that moves N(mean, spread + kept) to the moments of the tilted distribution.

    l, d1 and d2 are log E[p(y|f)] and its derivatives in the mean, with the whole variance of f. `kept` is the part of
    the residual variance that belongs to the process; the site is then taken for a function of aᵀv, of variance
    `spread`, alone, and its logarithm loses ½ τ · kept on average. `shrinkage` is 1 + d2 · (spread + kept).

    Source: csato2002 eqs (108) to (114), with the constant of eq. (111) that eq. (113) lacks; :eq:`cs-site`,
    :eq:`cs-rho`, :eq:`ep-height`, :eq:`ep-site-height`.
    """
    tau, nu = -d2 / shrinkage, (d1 - d2 * mean) / shrinkage
    return tau, nu, l - site_log_mass(tau, nu, mean, spread + kept) - 0.5 * tau * kept


def site_log_mass(tau: Any, nu: Any, mean: Any, variance: Any) -> Any:
    """log E[exp(νf − ½τf²)] under f ~ N(mean, variance), with 1 + τ · variance > 0; the arguments broadcast."""
    growth = 1 + tau * variance
    return 0.5 * ((nu**2 * variance + 2 * nu * mean - tau * mean**2) / growth - np.log(growth))
