"""Power EP for a full Gaussian process with a probit likelihood, by quadrature: written apart from `pepcore`.

One site at a time, moments by Gauss-Hermite quadrature with 100 nodes, K with nothing added. Needs NumPy and SciPy.
"""

import numpy as np
from compare import report, stored
from scipy.special import log_ndtr

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(100)
WEIGHTS = WEIGHTS / np.sqrt(2 * np.pi)


def tilted(y, mean, variance, alpha):
    """log Z, mean and variance of N(f; mean, variance) Phi(y f)^alpha."""
    f = mean + np.sqrt(variance) * NODES
    weights = WEIGHTS * np.exp(alpha * log_ndtr(y * f))
    Z = weights.sum()
    first = weights @ f / Z
    return np.log(Z), first, weights @ (f - first) ** 2 / Z


def posterior(K, precision, shift):
    B = np.eye(len(K)) + np.sqrt(precision)[:, None] * K * np.sqrt(precision)
    half = np.linalg.solve(np.linalg.cholesky(B), np.sqrt(precision)[:, None] * K)
    Sigma = K - half.T @ half
    return Sigma, Sigma @ shift, np.linalg.slogdet(B)[1]


def power_ep(K, y, alpha, tolerance=1e-12, sweeps=2000):
    """log evidence, and mean and variance of the latent function at the training inputs."""
    precision, shift = np.full(len(y), 1e-10), np.zeros(len(y))
    for _ in range(sweeps):
        before = np.concatenate([precision, shift])
        for n in range(len(y)):
            Sigma, mu, _ = posterior(K, precision, shift)
            cavity = 1 / (1 / Sigma[n, n] - alpha * precision[n])
            mean = cavity * (mu[n] / Sigma[n, n] - alpha * shift[n])
            _, first, second = tilted(y[n], mean, cavity, alpha)
            # the whole site in place of the fraction alpha of it
            precision[n] = (1 / second - 1 / cavity) / alpha
            shift[n] = (first / second - mean / cavity) / alpha
        if np.abs(np.concatenate([precision, shift]) - before).max() < tolerance:
            break
    Sigma, mu, logdet = posterior(K, precision, shift)
    variance = np.diag(Sigma)
    cavity = 1 / (1 / variance - alpha * precision)
    mean = cavity * (mu / variance - alpha * shift)
    logs = np.array([tilted(*given, alpha)[0] for given in zip(y, mean, cavity)])
    # with Phi the log-partition function: log Z_PEP = Phi(q) - Phi(prior) + sum_n (log Z_n + Phi(cavity_n) - Phi(q_n)) / alpha
    partition = lambda m, v: 0.5 * m**2 / v + 0.5 * np.log(v)
    evidence = 0.5 * shift @ mu - 0.5 * logdet + np.sum(logs + partition(mean, cavity) - partition(mu, variance)) / alpha
    return evidence, mu, variance


def main():
    data, values = stored("classification_small.npz"), {}
    X = data["X"] / data["ls"]
    K = float(data["s2"]) * np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    for alpha in (1.0, 0.5, 0.2):
        found = power_ep(K, data["y_pm1"][:, 0], alpha)
        values |= {f"quad_fullpep_{alpha}__{name}": value for name, value in zip(("lml", "mean_train", "var_train"), found)}
    report("classification_small.npz", values)


if __name__ == "__main__":
    main()
