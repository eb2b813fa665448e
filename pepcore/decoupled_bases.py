"""Decoupled bases: M points beta carry mean and covariance, G points gamma only the mean, in three parametrisations.

Whatever its parametrisation, q(f) is the one process

    mean(x) = a(x)ᵀw + k_γ(x)ᵀg,    covariance(x, x') = k(x, x') − a(x)ᵀa(x') + a(x)ᵀV a(x')

with the features a(x) = L⁻¹k_β(x). A parametrisation says how (w, g, V) follows from its own parameters (`process`),
and takes derivatives back to them (`pull_back`): for F(w, g, V) + ½ log|V|, those of F.

| class | mean | covariance | source |
| --- | --- | --- | --- |
| `Hybrid` | k_γᵀa_γ + k_βᵀK_β⁻¹m_β | S, by its Cholesky factor | salimbeni2018 eq. (11) |
| `Orthogonal` | (k_γ − K_γβK_β⁻¹k_β)ᵀa_γ + k_βᵀa_β | S, by its Cholesky factor | salimbeni2018 eq. (12) |
| `Decoupled` | k_γᵀa | (I + Ψ_β B Ψ_βᵀ)⁻¹, by the Cholesky factor of B | salimbeni2018 eq. (8) |

Without gamma the first two are the coupled basis, in the coordinates m_β and a_β = K_β⁻¹m_β. Nothing here costs more
than O(GM + M³), except what needs the covariance of gamma itself: `residual_covariance` and the exact `gamma_product`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pepcore.features import Basis
from pepcore.gaussian import inverse_lower, multiply_lower, safe_cholesky, solve_lower


@dataclass(frozen=True, eq=False)
class Bases:
    """The two bases and what they share.

    Attributes
    ----------
    basis : Basis of the M points beta, with L Lᵀ = K_β + jitter
    gamma : (G, D) points that carry only the mean; G may be 0
    vjp_beta : derivatives through K_β, as `value_and_vjp` of the kernel gives them
    """

    basis: Basis
    gamma: np.ndarray
    vjp_beta: Callable

    @classmethod
    def build(cls, kernel, beta, gamma, jitter=1e-6):
        """Factorise K_β for beta (M, D); gamma (G, D)."""
        basis, vjp_beta = Basis.build_with_vjp(kernel, beta, jitter)
        return cls(basis, gamma, vjp_beta)

    @property
    def kernel(self):
        return self.basis.kernel

    @property
    def beta(self):
        return self.basis.Z

    @property
    def L(self):
        return self.basis.L

    @cached_property
    def L_inverse(self):
        """L⁻¹ (M, M), for derivatives and changes of coordinates: half the time of a solution, see `multiply_lower`."""
        return inverse_lower(self.L)

    @cached_property
    def points(self):
        """gamma and beta, one above the other, (G + M, D)."""
        return np.vstack([self.gamma, self.beta])

    @cached_property
    def cross_and_vjp(self):
        """K_βγ (M, G) and the derivatives through it; G > 0."""
        return self.kernel.value_and_vjp(self.beta, self.gamma)

    @property
    def cross(self):
        """K_βγ (M, G)."""
        return self.cross_and_vjp[0] if len(self.gamma) else np.zeros((len(self.beta), 0))

    def project(self, weights):
        """A_γ weights (M,) for weights (G,): the share of Ψ_γ weights in the span of Ψ_β; A_γ = L⁻¹K_βγ."""
        return solve_lower(self.L, self.cross @ weights)

    def project_transposed(self, u):
        """A_γᵀu (G,) for u (M,)."""
        return self.cross.T @ solve_lower(self.L, u, transposed=True)

    @cached_property
    def residual_variance(self):
        """diag(K_γ − K_γβK_β⁻¹K_βγ) (G,): what beta leaves unexplained at gamma. O(GM²), once."""
        return self.basis.features(self.gamma)[1]

    @cached_property
    def residual_covariance(self):
        """K_γ − K_γβK_β⁻¹K_βγ (G, G); only for the exact rules, which cost O(G³)."""
        A = solve_lower(self.L, np.array(self.cross, order="F"))
        return self.gamma_covariance - A.T @ A

    @cached_property
    def residual_root(self):
        """Lower Cholesky factor (G, G) of `residual_covariance`, with a jitter only where it fails without."""
        scale = self.kernel.diagonal(self.gamma).mean()
        return safe_cholesky(self.residual_covariance, scale, name="covariance of f(gamma) given f(beta)")[0]

    @cached_property
    def gamma_covariance(self):
        """K_γ (G, G)."""
        return self.kernel(self.gamma) if len(self.gamma) else np.zeros((0, 0))

    def gamma_product(self, weights, columns=None, K=None):
        """An estimate of K_γ weights (G,) without bias, from the `columns` (C,) of K_γ; exact with all of them (None).

        K (G, C) are those columns, computed if left out. The estimate is half the gradient of the estimate of the squared
        norm, (G/C) Σ_c weights_c k_cᵀweights.

        Source: salimbeni2018 appendix A.3.
        """
        if not len(self.gamma):
            return np.zeros(0)
        if columns is None:
            return self.gamma_covariance @ weights
        K = self.kernel(self.gamma, self.gamma[columns]) if K is None else K
        scale = len(self.gamma) / len(columns)
        product = 0.5 * scale * (K @ weights[columns])
        np.add.at(product, columns, 0.5 * scale * (weights @ K))
        return product


@dataclass(frozen=True, eq=False)
class Process:
    """mean(x) = a(x)ᵀw + k_γ(x)ᵀg and V, see the head of this module.

    Attributes
    ----------
    w : (M,)
    g : (G,)
    root : (M, M) triangular, root rootᵀ = V
    upper : bool, whether root is upper triangular; else it is lower triangular
    """

    w: np.ndarray
    g: np.ndarray
    root: np.ndarray
    upper: bool = False

    def whiten(self, A):
        """rootᵀA (M, B) for A (M, B): column by column of squared length aᵀV a, in half the time of V A."""
        A = np.array(A, order="F")
        return multiply_lower(self.root.T, A) if self.upper else multiply_lower(self.root, A, transposed=True)

    @cached_property
    def V(self):
        """V (M, M)."""
        return self.root @ self.root.T

    @cached_property
    def log_determinant(self):
        """log |V|."""
        return 2 * np.log(np.abs(np.diag(self.root))).sum()


class PulledBack(NamedTuple):
    """Derivatives with respect to a parametrisation, and through it with respect to L and to A_γ."""

    parameters: dict  # name -> array like the parameter
    S: np.ndarray | None  # (M, M), −Lᵀ dF/dL, of which only the lower triangle counts; only if VdV is given
    u: np.ndarray  # (M,), dF/dA_γ = u gᵀ


@dataclass(frozen=True, eq=False)
class Hybrid:
    """mean k_γᵀa_γ + k_βᵀK_β⁻¹m_β; the coupled basis if gamma is empty.

    Attributes
    ----------
    a_gamma : (G,)
    m_beta : (M,), q's mean of f at beta, less what gamma adds there
    S_root : (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta

    Source: salimbeni2018 eqs (7) and (11); :eq:`og-bases`.
    """

    a_gamma: np.ndarray
    m_beta: np.ndarray
    S_root: np.ndarray

    @classmethod
    def prior(cls, bases):
        """q = prior."""
        return cls(np.zeros(len(bases.gamma)), np.zeros(len(bases.beta)), bases.L.copy(order="F"))

    @classmethod
    def from_process(cls, bases, process):
        """The parameters of a process whose `root` is lower triangular."""
        return cls(process.g, bases.L @ process.w, multiply_lower(bases.L, np.array(process.root, order="F")))

    def process(self, bases):
        root = multiply_lower(bases.L_inverse, np.array(self.S_root, order="F"))
        return Process(solve_lower(bases.L, self.m_beta), self.a_gamma, root)

    def pull_back(self, bases, process, dw, dg, dV, VdV=None):
        """From derivatives in (w, g, V) to those in the fields; chain rule, w = L⁻¹m_β and root = L⁻¹S_root.

        Without dV that in S_root is left out; VdV = V dV is for `PulledBack.S`.
        """
        dS_root, S = _root_pull_back(bases, process, dV, VdV)
        parameters = {"a_gamma": dg, "m_beta": solve_lower(bases.L, dw, transposed=True)} | dS_root
        if S is not None:
            S += np.outer(dw, process.w)
        return PulledBack(parameters, S, np.zeros_like(dw))


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """mean (k_γ − K_γβK_β⁻¹k_β)ᵀa_γ + k_βᵀa_β: gamma adds nothing that beta could model.

    Attributes
    ----------
    a_gamma : (G,)
    a_beta : (M,), K_β⁻¹ times q's mean of f at beta
    S_root : (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta

    Source: salimbeni2018 eq. (12); :eq:`og-rkhs`, :eq:`og-process`.
    """

    a_gamma: np.ndarray
    a_beta: np.ndarray
    S_root: np.ndarray

    @classmethod
    def prior(cls, bases):
        """q = prior."""
        return cls(np.zeros(len(bases.gamma)), np.zeros(len(bases.beta)), bases.L.copy(order="F"))

    @classmethod
    def from_process(cls, bases, process):
        """The parameters of a process whose `root` is lower triangular."""
        m = process.w + bases.project(process.g)
        a_beta = solve_lower(bases.L, m, transposed=True)
        return cls(process.g, a_beta, multiply_lower(bases.L, np.array(process.root, order="F")))

    def process(self, bases):
        root = multiply_lower(bases.L_inverse, np.array(self.S_root, order="F"))
        w = bases.L.T @ self.a_beta - bases.project(self.a_gamma)
        return Process(w, self.a_gamma, root)

    def pull_back(self, bases, process, dw, dg, dV, VdV=None):
        """From derivatives in (w, g, V) to those in the fields; chain rule, w = Lᵀa_β − A_γa_γ and root = L⁻¹S_root.

        Without dV that in S_root is left out; VdV = V dV is for `PulledBack.S`.
        """
        dS_root, S = _root_pull_back(bases, process, dV, VdV)
        da_gamma = dg - bases.project_transposed(dw)
        parameters = {"a_gamma": da_gamma, "a_beta": bases.L @ dw} | dS_root
        if S is not None:
            S -= np.outer(bases.L.T @ self.a_beta, dw)
        return PulledBack(parameters, S, -dw)


@dataclass(frozen=True, eq=False)
class Decoupled:
    """Mean k_γᵀa in a basis of its own, here called gamma, and Σ⁻¹ = I + Ψ_β B Ψ_βᵀ.

    Attributes
    ----------
    a_gamma : (G,)
    B_root : (M, M) lower triangular, B = B_root B_rootᵀ

    Source: salimbeni2018 eq. (8), where gamma is called alpha; :eq:`og-bases`.
    """

    a_gamma: np.ndarray
    B_root: np.ndarray

    @classmethod
    def prior(cls, bases, size=1e-3):
        """Nearly q = prior: B_root = size I over the kernel's standard deviation.

        At B = 0 itself the derivative in B_root vanishes and no gradient step could leave it.
        """
        size = size / np.sqrt(bases.kernel.diagonal(bases.beta).mean())
        return cls(np.zeros(len(bases.gamma)), np.asfortranarray(size * np.eye(len(bases.beta))))

    def process(self, bases):
        Q = bases.L.T @ self.B_root
        C, _ = safe_cholesky(np.eye(len(Q)) + Q @ Q.T, name="I + L'BL")
        return Process(np.zeros(len(Q)), self.a_gamma, inverse_lower(C).T, upper=True)

    def pull_back(self, bases, process, dw, dg, dV, VdV=None):
        """From derivatives in (g, V) to those in the fields; chain rule, V = (I + QQᵀ)⁻¹ and Q = LᵀB_root."""
        Q = bases.L.T @ self.B_root
        VQ = process.V @ Q
        dQ = -2 * process.V @ (dV @ VQ) - VQ
        parameters = {"a_gamma": dg, "B_root": np.tril(bases.L @ dQ)}
        return PulledBack(parameters, -Q @ dQ.T, np.zeros_like(dw))


def _root_pull_back(bases, process, dV, VdV):
    """dF/dS_root, in a dict, and −Lᵀ dF/dL, for root = L⁻¹S_root with dF/droot = 2 dV root + root⁻ᵀ.

    Of dF/dS_root = L⁻ᵀ dF/droot and of −Lᵀ dF/dL = dF/droot rootᵀ = 2 dV V + I only the lower triangles count.
    """
    dS_root, S = {}, None
    if dV is not None:
        transposed = multiply_lower(process.root, np.array(2 * dV, order="F"), transposed=True)
        transposed[np.diag_indices_from(transposed)] += 1 / np.diag(process.root)
        product = multiply_lower(bases.L_inverse, np.array(transposed.T, order="F"), transposed=True)
        dS_root = {"S_root": np.tril(product)}
    if VdV is not None:
        S = 2 * VdV.T
        S[np.diag_indices_from(S)] += 1
    return dS_root, S


PARAMETRISATIONS = {"coupled": Hybrid, "hybrid": Hybrid, "orthogonal": Orthogonal, "decoupled": Decoupled}
