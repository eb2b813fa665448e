"""How many multiplications a method takes: textbook loops on numbers that count, beside the formula of the chapter.

`counted(N, M)` runs the steps of sparse regression on small problems, once each, and counts multiplications and divisions;
`derived(N, M)` is what chapter "Sparse regression: one family" derives. They differ by terms of lower order only.
"""

import numpy as np


class Counter:
    """Linear algebra by loops over rows, whose multiplications are counted in `multiplications`."""

    def __init__(self):
        self.multiplications = 0

    def dot(self, first, second):
        """A scalar product."""
        self.multiplications += len(first)
        return first @ second

    def cholesky(self, K):
        """Lower factor L with L Lᵀ = K, row by row."""
        L = np.zeros_like(K)
        for i in range(len(K)):
            for j in range(i):
                L[i, j] = (K[i, j] - self.dot(L[i, :j], L[j, :j])) / L[j, j]
                self.multiplications += 1
            L[i, i] = np.sqrt(K[i, i] - self.dot(L[i, :i], L[i, :i]))
        return L

    def solve_lower(self, L, B):
        """L⁻¹ B by forward substitution, column by column of B."""
        X = np.zeros_like(B)
        for column in range(B.shape[1]):
            for i in range(len(L)):
                X[i, column] = (B[i, column] - self.dot(L[i, :i], X[:i, column])) / L[i, i]
                self.multiplications += 1
        return X

    def outer_sum(self, A, weights):
        """A diag(weights) Aᵀ; by symmetry one triangle is enough."""
        scaled = A * weights
        self.multiplications += A.size
        result = np.zeros((len(A), len(A)))
        for i in range(len(A)):
            for j in range(i + 1):
                result[i, j] = result[j, i] = self.dot(scaled[i], A[j])
        return result


def problem(N, M):
    """K_uu (M, M), K_uf (M, N) and weights (N,) with nothing special about them."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((M, M))
    return root @ root.T + M * np.eye(M), rng.standard_normal((M, N)), rng.uniform(0.5, 2, N)


def counted(N, M):
    """Multiplications of each step: dict of name -> count."""
    K_uu, K_uf, tau = problem(N, M)
    counts = {}

    def step(name, action):
        counter = Counter()
        result = action(counter)
        counts[name] = counter.multiplications
        return result

    L = step("Cholesky factor of K_uu", lambda count: count.cholesky(K_uu))
    A = step("features A", lambda count: count.solve_lower(L, K_uf))
    precision = step("precision I + A diag(τ) Aᵀ", lambda count: np.eye(M) + count.outer_sum(A, tau))
    C = step("its Cholesky factor", lambda count: count.cholesky(precision))
    step("V A, for the gradient", lambda count: count.solve_lower(C[::-1, ::-1].T, count.solve_lower(C, A)[::-1])[::-1])
    step("full GP: Cholesky factor of K + σ²I", lambda count: count.cholesky(np.eye(N) + K_uf.T @ K_uf))
    return counts


def derived(N, M):
    """The leading terms that the chapter derives, for the same steps."""
    return {"Cholesky factor of K_uu": M**3 / 6, "features A": N * M**2 / 2, "precision I + A diag(τ) Aᵀ": N * M**2 / 2,
            "its Cholesky factor": M**3 / 6, "V A, for the gradient": N * M**2,
            "full GP: Cholesky factor of K + σ²I": N**3 / 6}
