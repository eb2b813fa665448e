"""The parametrisations of a decoupled process, see `pepcore.decoupled.bases`.

Each says how (w, g, V) follows from its own parameters (`process`), and takes derivatives back to them (`pull_back`):
for F(w, g, V) + ½ log|V|, those of F.

| class | mean | covariance | source |
| --- | --- | --- | --- |
| `Hybrid` | k_γᵀa_γ + k_βᵀK_β⁻¹m_β | S, by its Cholesky factor | salimbeni2018 eq. (11) |
| `Orthogonal` | (k_γ − K_γβK_β⁻¹k_β)ᵀa_γ + k_βᵀK_β⁻¹m_β | S, by its Cholesky factor | :eq:`og-values` |
| `OrthogonalWeights` | the same with a_β in place of K_β⁻¹m_β | S, by its Cholesky factor | salimbeni2018 eq. (12) |
| `Decoupled` | k_γᵀa | (I + Ψ_β B Ψ_βᵀ)⁻¹, by the Cholesky factor of B | salimbeni2018 eq. (8) |

Without gamma the first three are the coupled basis, in the coordinates m_β, m_β and a_β = K_β⁻¹m_β.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from pepcore.decoupled.bases import Bases, Process
from pepcore.gaussian import Array, inverse_lower, multiply_lower, safe_cholesky, solve_lower


class PulledBack(NamedTuple):
    """Derivatives with respect to a parametrisation, and through it with respect to L and to A_γ."""

    parameters: dict  # name -> array like the parameter
    S: Array | None  # (M, M), −Lᵀ dF/dL, of which only the lower triangle counts; only if VdV is given
    u: Array  # (M,), dF/dA_γ = u gᵀ


class _CovarianceOfBeta:
    """Shared by the parametrisations that hold the covariance of f at beta.

    Each gives its second field for a process (`_second`), w from its fields (`_w`), and the derivatives back through
    that (`_mean_pull_back`): in the fields, the two vectors whose outer product is −Lᵀ dF/dL, and u of dF/dA_γ = u gᵀ.
    """

    @classmethod
    def prior(cls: Any, bases: Bases) -> Any:
        """q = prior."""
        return cls(np.zeros(len(bases.gamma)), np.zeros(len(bases.beta)), bases.L.copy(order="F"))

    @classmethod
    def from_process(cls: Any, bases: Bases, process: Process) -> Any:
        """The parameters of a process whose `root` is lower triangular."""
        return cls(process.g, cls._second(bases, process), multiply_lower(bases.L, np.array(process.root, order="F")))

    def process(self: Any, bases: Bases) -> Process:
        """The `Process` that these parameters describe."""
        root = multiply_lower(bases.L_inverse, np.array(self.S_root, order="F"))
        return Process(self._w(bases), self.a_gamma, root)

    def pull_back(
        self: Any, bases: Bases, process: Process, dw: Array, dg: Array, dV: Array | None, VdV: Array | None = None
    ) -> PulledBack:
        """From derivatives in (w, g, V) to those in the fields; chain rule through `_w`, and root = L⁻¹S_root.

        Without dV that in S_root is left out; VdV = V dV is for `PulledBack.S`.
        """
        dS_root, S = _root_pull_back(bases, process, dV, VdV)
        mean, through_L, u = self._mean_pull_back(bases, dw, dg)
        if S is not None:
            S += np.outer(*through_L)
        return PulledBack(mean | dS_root, S, u)


@dataclass(frozen=True, eq=False)
class Hybrid(_CovarianceOfBeta):
    """mean k_γᵀa_γ + k_βᵀK_β⁻¹m_β; the coupled basis if gamma is empty.

    Source: salimbeni2018 eqs (7) and (11); :eq:`og-bases`.
    """

    a_gamma: Array  #: (G,)
    m_beta: Array  #: (M,), q's mean of f at beta, less what gamma adds there
    S_root: Array  #: (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta

    @staticmethod
    def _second(bases: Bases, process: Process) -> Array:
        return bases.L @ process.w

    def _w(self, bases: Bases) -> Array:
        return solve_lower(bases.L, self.m_beta)

    def _mean_pull_back(self, bases: Bases, dw: Array, dg: Array) -> tuple[dict, tuple, Array]:
        mean = {"a_gamma": dg, "m_beta": solve_lower(bases.L, dw, transposed=True)}
        return mean, (dw, solve_lower(bases.L, self.m_beta)), np.zeros_like(dw)


@dataclass(frozen=True, eq=False)
class Orthogonal(_CovarianceOfBeta):
    """mean (k_γ − K_γβK_β⁻¹k_β)ᵀa_γ + k_βᵀK_β⁻¹m_β: gamma adds nothing that beta could model.

    Source: salimbeni2018 eq. (12), in function values as its authors' program has it; :eq:`og-rkhs`, :eq:`og-values`.
    """

    a_gamma: Array  #: (G,)
    m_beta: Array  #: (M,), q's mean of f at beta
    S_root: Array  #: (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta

    @staticmethod
    def _second(bases: Bases, process: Process) -> Array:
        return bases.L @ (process.w + bases.project(process.g))

    def _w(self, bases: Bases) -> Array:
        return solve_lower(bases.L, self.m_beta) - bases.project(self.a_gamma)

    def _mean_pull_back(self, bases: Bases, dw: Array, dg: Array) -> tuple[dict, tuple, Array]:
        mean = {"a_gamma": dg - bases.project_transposed(dw), "m_beta": solve_lower(bases.L, dw, transposed=True)}
        return mean, (dw, solve_lower(bases.L, self.m_beta)), -dw


@dataclass(frozen=True, eq=False)
class OrthogonalWeights(_CovarianceOfBeta):
    """The orthogonal basis in weights: K_β⁻¹ times q's mean of f at beta in place of the mean. As the paper prints it.

    Source: salimbeni2018 eq. (12); :eq:`og-values`.
    """

    a_gamma: Array  #: (G,)
    a_beta: Array  #: (M,), K_β⁻¹ times q's mean of f at beta
    S_root: Array  #: (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta

    @staticmethod
    def _second(bases: Bases, process: Process) -> Array:
        return solve_lower(bases.L, process.w + bases.project(process.g), transposed=True)

    def _w(self, bases: Bases) -> Array:
        return bases.L.T @ self.a_beta - bases.project(self.a_gamma)

    def _mean_pull_back(self, bases: Bases, dw: Array, dg: Array) -> tuple[dict, tuple, Array]:
        mean = {"a_gamma": dg - bases.project_transposed(dw), "a_beta": bases.L @ dw}
        return mean, (-(bases.L.T @ self.a_beta), dw), -dw


@dataclass(frozen=True, eq=False)
class Decoupled:
    """Mean k_γᵀa in a basis of its own, here called gamma, and Σ⁻¹ = I + Ψ_β B Ψ_βᵀ.

    Source: salimbeni2018 eq. (8), where gamma is called alpha; :eq:`og-bases`.
    """

    a_gamma: Array  #: (G,)
    B_root: Array  #: (M, M) lower triangular, B = B_root B_rootᵀ

    @classmethod
    def prior(cls, bases: Bases, size: float = 1e-3) -> Self:
        """Nearly q = prior: B_root = size I over the kernel's standard deviation.

        At B = 0 itself the derivative in B_root vanishes and no gradient step could leave it.
        """
        size = size / np.sqrt(bases.kernel.diagonal(bases.beta).mean())
        return cls(np.zeros(len(bases.gamma)), np.asfortranarray(size * np.eye(len(bases.beta))))

    def process(self, bases: Bases) -> Process:
        """The `Process` that these parameters describe."""
        Q = bases.L.T @ self.B_root
        C, _ = safe_cholesky(np.eye(len(Q)) + Q @ Q.T, name="I + L'BL")
        return Process(np.zeros(len(Q)), self.a_gamma, inverse_lower(C).T, upper=True)

    def pull_back(
        self, bases: Bases, process: Process, dw: Array, dg: Array, dV: Array, VdV: Array | None = None
    ) -> PulledBack:
        """From derivatives in (g, V) to those in the fields; chain rule, V = (I + QQᵀ)⁻¹ and Q = LᵀB_root."""
        Q = bases.L.T @ self.B_root
        VQ = process.V @ Q
        dQ = -2 * process.V @ (dV @ VQ) - VQ
        parameters = {"a_gamma": dg, "B_root": np.tril(bases.L @ dQ)}
        return PulledBack(parameters, -Q @ dQ.T, np.zeros_like(dw))


def _root_pull_back(bases: Bases, process: Process, dV: Array | None, VdV: Array | None) -> tuple[dict, Array | None]:
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


PARAMETRISATIONS = {
    "coupled": Hybrid, "hybrid": Hybrid, "orthogonal": Orthogonal, "orthogonal-weights": OrthogonalWeights,
    "decoupled": Decoupled,
}
