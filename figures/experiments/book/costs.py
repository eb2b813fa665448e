"""How many multiplications a method takes: textbook loops on numbers that count, beside the formula of the chapter.

`counted(N, M)` runs the steps of sparse regression on small problems, once each, and counts multiplications and divisions;
`derived(N, M)` is what chapter "Sparse regression: one family" derives. They differ by terms of lower order only.
`counted_decoupled` and `derived_decoupled` do the same for a step of chapter "Orthogonal natural gradients".
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

    def product(self, A, x):
        """A x for a matrix and a vector."""
        return np.array([self.dot(row, x) for row in A])

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


class Steps:
    """Runs named steps, each with a counter of its own; `counts` holds the multiplications of each."""

    def __init__(self):
        self.counts = {}

    def __call__(self, name, action):
        counter = Counter()
        result = action(counter)
        self.counts[name] = counter.multiplications
        return result


def problem(N, M):
    """K_uu (M, M), K_uf (M, N) and weights (N,) with nothing special about them."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((M, M))
    return root @ root.T + M * np.eye(M), rng.standard_normal((M, N)), rng.uniform(0.5, 2, N)


def counted(N, M):
    """Multiplications of each step: dict of name -> count."""
    K_uu, K_uf, tau = problem(N, M)
    step = Steps()
    L = step("Cholesky factor of K_uu", lambda count: count.cholesky(K_uu))
    A = step("features A", lambda count: count.solve_lower(L, K_uf))
    precision = step("precision I + A diag(τ) Aᵀ", lambda count: np.eye(M) + count.outer_sum(A, tau))
    C = step("its Cholesky factor", lambda count: count.cholesky(precision))
    step("V A, for the gradient", lambda count: count.solve_lower(C[::-1, ::-1].T, count.solve_lower(C, A)[::-1])[::-1])
    step("full GP: Cholesky factor of K + σ²I", lambda count: count.cholesky(np.eye(N) + K_uf.T @ K_uf))
    return step.counts


def derived(N, M):
    """The leading terms that the chapter derives, for the same steps."""
    return {"Cholesky factor of K_uu": M**3 / 6, "features A": N * M**2 / 2, "precision I + A diag(τ) Aᵀ": N * M**2 / 2,
            "its Cholesky factor": M**3 / 6, "V A, for the gradient": N * M**2,
            "full GP: Cholesky factor of K + σ²I": N**3 / 6}


def counted_decoupled(batch, M, G):
    """Multiplications of each part of a step with M points for both and G points for the mean: dict of name -> count."""
    K, K_bx, tau = problem(batch, M)
    K_g, K_gx, _ = problem(batch, G)
    rng = np.random.default_rng(1)
    K_bg, g, m, d1 = 0.1 * rng.standard_normal((M, G)), *(rng.standard_normal(size) for size in (G, M, batch))
    step, L = Steps(), np.linalg.cholesky(K)
    A = step("features of the batch", lambda count: count.solve_lower(L, K_bx))
    P = np.eye(M) + (A * tau) @ A.T
    C = np.linalg.cholesky(P)
    step("variances, sum of τ a aᵀ", lambda count: (count.solve_lower(C, A), count.outer_sum(A, tau)))

    def mean_and_slope(count):
        projected = count.solve_lower(L, count.product(K_bg, g)[:, None])[:, 0]  # A_γ g
        mean = count.product(K_gx.T, g) + count.product(A.T, m - projected)
        back = count.solve_lower(L[::-1, ::-1].T, (count.product(A, d1) - projected)[::-1, None])[::-1, 0]
        return mean, count.product(K_gx, d1) - count.product(K_bg.T, back)

    step("means, slope in g", mean_and_slope)
    step("K_γ g", lambda count: count.product(K_g, g))
    step("factors of K_β and P", lambda count: (count.cholesky(K), count.cholesky(P)))

    def residual_factor(count):
        A_gamma = count.solve_lower(L, K_bg)
        return count.cholesky(K_g - count.outer_sum(A_gamma.T, np.ones(M)))

    root = step("exact rule, once", residual_factor)
    step("exact rule, each step", lambda count: count.solve_lower(
        root[::-1, ::-1].T, count.solve_lower(root, g[:, None])[::-1]))
    all_points, K_ax, _ = problem(batch, M + G)

    def coupled(count):
        root = count.cholesky(all_points)
        features = count.solve_lower(root, K_ax)
        precision = np.eye(M + G) + count.outer_sum(features, tau)
        return count.solve_lower(count.cholesky(precision), features)

    step("coupled basis, all points", coupled)
    return step.counts


def derived_decoupled(batch, M, G):
    """The leading terms that the chapter derives, for the same parts."""
    both = M + G
    return {"features of the batch": batch * M**2 / 2, "variances, sum of τ a aᵀ": batch * M**2,
            "means, slope in g": 2 * batch * both + 2 * G * M + M**2, "K_γ g": G**2, "factors of K_β and P": M**3 / 3,
            "exact rule, once": G * M**2 / 2 + G**2 * M / 2 + G**3 / 6, "exact rule, each step": G**2,
            "coupled basis, all points": 3 * batch * both**2 / 2 + both**3 / 3}
