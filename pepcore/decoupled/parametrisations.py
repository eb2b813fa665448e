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
    """The common part of the parametrisations that hold the covariance of f at beta.

    Their second field is the mean that beta carries, here as function values `m_beta`: q's mean of f at beta, less what
    gamma adds there if the basis is not `orthogonal`.
    """

    orthogonal = True

    @classmethod
    def prior(cls: Any, bases: Bases) -> Any:
        """q = prior."""
        return cls(np.zeros(len(bases.gamma)), np.zeros(len(bases.beta)), bases.L.copy(order="F"))

    @classmethod
    def from_process(cls: Any, bases: Bases, process: Process) -> Any:
        """The parameters of a process whose `root` is lower triangular."""
        mean = process.w + bases.project(process.g) if cls.orthogonal else process.w
        return cls(process.g, cls._second(bases, mean), multiply_lower(bases.L, np.array(process.root, order="F")))

    def process(self: Any, bases: Bases) -> Process:
        """The `Process` that these parameters describe."""
        mean, root = self._mean(bases), multiply_lower(bases.L_inverse, np.array(self.S_root, order="F"))
        return Process(mean - bases.project(self.a_gamma) if self.orthogonal else mean, self.a_gamma, root)

    def pull_back(
        self: Any, bases: Bases, process: Process, dw: Array, dg: Array, dV: Array | None, VdV: Array | None = None
    ) -> PulledBack:
        """From derivatives in (w, g, V) to those in the fields, by the chain rule through w and root = L⁻¹S_root.

        Without dV, the one in S_root is left out; VdV = V dV is for `PulledBack.S`. With dF/droot = 2 dV root + root⁻ᵀ,
        dF/dS_root = L⁻ᵀ dF/droot and the root's share of −Lᵀ dF/dL is dF/droot rootᵀ = 2 dV V + I; of both only the
        lower triangles count.
        """
        second, through_L = self._mean_pull_back(bases, dw)
        parameters = {"a_gamma": dg - bases.project_transposed(dw) if self.orthogonal else dg} | second
        if dV is not None:
            transposed = multiply_lower(process.root, np.array(2 * dV, order="F"), transposed=True)
            transposed[np.diag_indices_from(transposed)] += 1 / np.diag(process.root)
            product = multiply_lower(bases.L_inverse, np.array(transposed.T, order="F"), transposed=True)
            parameters["S_root"] = np.tril(product)
        S = None
        if VdV is not None:
            S = 2 * VdV.T
            S[np.diag_indices_from(S)] += 1
            S += np.outer(*through_L)
        return PulledBack(parameters, S, -dw if self.orthogonal else np.zeros_like(dw))

    @staticmethod
    def _second(bases: Bases, mean: Array) -> Array:
        """The second field, for a(x)ᵀmean as the mean that beta carries."""
        return bases.L @ mean

    def _mean(self: Any, bases: Bases) -> Array:
        """The inverse of `_second`."""
        return solve_lower(bases.L, self.m_beta)

    def _mean_pull_back(self: Any, bases: Bases, dw: Array) -> tuple[dict, tuple]:
        """From derivatives in w to the one in the second field, and two vectors whose outer product is −Lᵀ dF/dL."""
        return {"m_beta": solve_lower(bases.L, dw, transposed=True)}, (dw, solve_lower(bases.L, self.m_beta))


@dataclass(frozen=True, eq=False)
class Hybrid(_CovarianceOfBeta):
    """mean k_γᵀa_γ + k_βᵀK_β⁻¹m_β; the coupled basis if gamma is empty.

    Source: salimbeni2018 eqs (7) and (11); :eq:`og-bases`.
    """

    orthogonal = False

    a_gamma: Array  #: (G,)
    m_beta: Array  #: (M,), q's mean of f at beta, less what gamma adds there
    S_root: Array  #: (M, M) lower triangular, S = S_root S_rootᵀ is the covariance of f at beta


@dataclass(frozen=True, eq=False)
class Orthogonal(_CovarianceOfBeta):
    """mean (k_γ − K_γβK_β⁻¹k_β)ᵀa_γ + k_βᵀK_β⁻¹m_β: gamma adds nothing that beta could model.

    Source: salimbeni2018 eq. (12), in function values as its authors' program has it; :eq:`og-rkhs`, :eq:`og-values`.
    """

    a_gamma: Array  #: (G,)
    m_beta: Array  #: (M,), q's mean of f at beta
    S_root: Array  #: (M, M), as in `Hybrid`


@dataclass(frozen=True, eq=False)
class OrthogonalWeights(_CovarianceOfBeta):
    """The orthogonal basis in weights: K_β⁻¹ times q's mean of f at beta in place of the mean. As the paper prints it.

    Source: salimbeni2018 eq. (12); :eq:`og-values`.
    """

    a_gamma: Array  #: (G,)
    a_beta: Array  #: (M,), K_β⁻¹ times q's mean of f at beta
    S_root: Array  #: (M, M), as in `Hybrid`

    @staticmethod
    def _second(bases: Bases, mean: Array) -> Array:
        return solve_lower(bases.L, mean, transposed=True)

    def _mean(self, bases: Bases) -> Array:
        return bases.L.T @ self.a_beta

    def _mean_pull_back(self, bases: Bases, dw: Array) -> tuple[dict, tuple]:
        return {"a_beta": bases.L @ dw}, (-(bases.L.T @ self.a_beta), dw)


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


PARAMETRISATIONS = {
    "coupled": Hybrid, "hybrid": Hybrid, "orthogonal": Orthogonal, "orthogonal-weights": OrthogonalWeights,
    "decoupled": Decoupled,
}
