"""Every entry of the errata page: the formula as printed is wrong, the corrected one is right.

Nothing here uses `pepcore`. The truth comes from brute force: dense matrices, quadrature, numerical derivatives, or an
algorithm run to convergence. The sign that a formula is wrong is that it misses the truth by far more than rounding.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm, rankdata

PAGE = Path(__file__).parents[2] / "chapters" / "errata.md"
RIGHT = 1e-8  # relative difference up to which two numbers count as equal
WRONG = 1e-3  # and from which on they count as different


def agree(value, truth):
    return np.max(np.abs(np.asarray(value) - truth)) <= RIGHT * np.max(np.abs(truth))


def differ(value, truth):
    return np.max(np.abs(np.asarray(value) - truth)) >= WRONG * np.max(np.abs(truth))


def se_kernel(X, Z, lengthscale=0.8, variance=1.2):
    return variance * np.exp(-0.5 * ((X[:, None] - Z[None, :]) / lengthscale) ** 2)


def log_det(S):
    return np.linalg.slogdet(S)[1]


def log_normal(y, mean, covariance):
    """log N(y; mean, covariance)."""
    residual = y - mean
    return -0.5 * (len(y) * np.log(2 * np.pi) + log_det(covariance) + residual @ np.linalg.solve(covariance, residual))


@pytest.fixture
def regression():
    """A small sparse regression problem in plain matrices: W maps u to the mean of f, D is the residual covariance."""
    rng = np.random.default_rng(0)
    N = 24
    X = 2 * rng.normal(size=N)
    Z = np.linspace(-3, 3, 5)
    K_uu, K_uf, K_ff = se_kernel(Z, Z), se_kernel(Z, X), se_kernel(X, X)
    W = np.linalg.solve(K_uu, K_uf)
    return {"y": np.sin(2 * X) + 0.3 * rng.normal(size=N), "K_uu": K_uu, "W": W, "Q": K_uf.T @ W,
            "D": K_ff - K_uf.T @ W, "noise": 0.1, "blocks": np.array_split(np.arange(N), 6)}


# bui2017 --------------------------------------------------------------------------------------------------------------


def block_power_ep(y, K_uu, W, D, noise, blocks, alphas, sweeps=60):
    """log Z of block Power EP by iterating deletion, projection, update; no closed form is used anywhere."""
    M = len(K_uu)
    prior = np.linalg.inv(K_uu)
    sites = [(np.zeros((M, M)), np.zeros(M)) for _ in blocks]

    def log_normaliser(precision, shift):
        return 0.5 * (M * np.log(2 * np.pi) - log_det(precision) + shift @ np.linalg.solve(precision, shift))

    def total():
        return prior + sum(T for T, _ in sites), sum(t for _, t in sites)

    def tilted(k):
        """Cavity of block k and the moments and log normaliser of cavity times likelihood^alpha."""
        (P, p), (T, t), alpha, b = total(), sites[k], alphas[k], blocks[k]
        cavity = P - alpha * T, p - alpha * t
        V = np.linalg.inv(cavity[0])
        m = V @ cavity[1]
        # N(y|f, noise)^alpha is a constant times N(y|f, noise/alpha)
        constant = 0.5 * len(b) * (np.log(2 * np.pi * noise / alpha) - alpha * np.log(2 * np.pi * noise))
        S = W[:, b].T @ V @ W[:, b] + D[np.ix_(b, b)] + noise / alpha * np.eye(len(b))
        log_Z = constant + log_normal(y[b], W[:, b].T @ m, S)
        gain = np.linalg.solve(S, W[:, b].T @ V).T
        return cavity, m + gain @ (y[b] - W[:, b].T @ m), V - gain @ W[:, b].T @ V, log_Z

    for _ in range(sweeps):
        for k, alpha in enumerate(alphas):
            (P, p), m, V, _ = tilted(k)
            T, t = sites[k]
            new_precision = np.linalg.inv(V)
            new_precision = (new_precision + new_precision.T) / 2  # or asymmetric rounding grows
            sites[k] = (1 - alpha) * T + new_precision - P, (1 - alpha) * t + new_precision @ m - p

    log_Z = log_normaliser(*total()) - log_normaliser(prior, np.zeros(M))
    for k, alpha in enumerate(alphas):
        cavity, _, _, log_tilted = tilted(k)
        log_Z += (log_tilted + log_normaliser(*cavity) - log_normaliser(*total())) / alpha
    return log_Z


def test_bui_1(regression):
    alphas = [0.3, 0.5, 0.7, 0.9, 0.2, 0.6]
    y, noise, D, blocks = (regression[key] for key in ("y", "noise", "D", "blocks"))
    K_bar = regression["Q"] + noise * np.eye(len(y))
    last_term = 0.0
    for alpha, b in zip(alphas, blocks):
        D_b = D[np.ix_(b, b)]
        K_bar[np.ix_(b, b)] += alpha * D_b
        last_term += (1 - alpha) / (2 * alpha) * log_det(np.eye(len(b)) + alpha * D_b / noise)
    truth = block_power_ep(y, regression["K_uu"], regression["W"], D, noise, blocks, alphas)
    assert differ(log_normal(y, 0, K_bar) + last_term, truth)
    assert agree(log_normal(y, 0, K_bar) - last_term, truth)


@pytest.fixture
def surrogate():
    """M surrogate observations y = W u + noise of covariance Sigma, with u ~ N(0, K): all of it known and dense."""
    rng = np.random.default_rng(1)
    M = 4
    root = rng.normal(size=(M, M))
    W, y, Sigma = rng.normal(size=(M, M)), rng.normal(size=M), np.diag(rng.uniform(0.2, 1.0, M))
    K = root @ root.T + np.eye(M)
    gain = K @ W.T @ np.linalg.inv(W @ K @ W.T + Sigma)
    return {"W": W, "y": y, "Sigma": Sigma, "K": K, "m": gain @ y, "S": K - gain @ W @ K}


def test_bui_2(surrogate):
    W, y, Sigma, K, m, S = (surrogate[key] for key in ("W", "y", "Sigma", "K", "m", "S"))
    K_inverse, S_inverse = np.linalg.inv(K), np.linalg.inv(S)
    data, information = np.linalg.solve(Sigma, y), W.T @ np.linalg.solve(Sigma, W)
    assert differ(W @ data, S_inverse @ m)  # the natural parameter of eq. (147)
    assert differ(W @ data, m)
    assert agree(W.T @ data, S_inverse @ m)
    assert differ(information, K_inverse - S_inverse)
    assert agree(information, S_inverse - K_inverse)
    # eq. (152) is built on (149): with Sigma^{-1/2} W = R^{T/2}
    root = np.linalg.cholesky(information)  # R^{1/2}
    whitened_W = root.T
    assert differ(whitened_W.T @ np.linalg.solve(root, m), S_inverse @ m)
    assert agree(whitened_W.T @ np.linalg.solve(root, S_inverse @ m), S_inverse @ m)


def test_bui_3(surrogate):
    W, y, Sigma, K = (surrogate[key] for key in ("W", "y", "Sigma", "K"))
    K_inverse = np.linalg.inv(K)
    precision = K_inverse + W.T @ np.linalg.solve(Sigma, W)
    data = np.linalg.solve(Sigma, y)
    constant = -0.5 * len(y) * np.log(2 * np.pi)
    last = 0.5 * data @ W @ np.linalg.solve(precision, W.T @ data)
    printed = constant - 0.5 * (log_det(precision) + log_det(K_inverse) + log_det(Sigma)) - 0.5 * y @ data - last
    corrected = constant - 0.5 * (log_det(precision) + log_det(K) + log_det(Sigma)) - 0.5 * y @ data + last
    truth = log_normal(y, 0, W @ K @ W.T + Sigma)
    assert differ(printed, truth)
    assert agree(corrected, truth)


def kl_gaussians(m_p, v_p, m_q, v_q):
    """KL(p || q) of two normal distributions on the line."""
    return 0.5 * (np.log(v_q / v_p) + (v_p + (m_p - m_q) ** 2) / v_q - 1)


def test_bui_4():
    """The projection: moment matching minimises the divergence, and a maximum does not exist."""
    weights, means, variances = np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([0.5, 1.5])
    tilted_mean = weights @ means
    tilted_variance = weights @ (variances + means**2) - tilted_mean**2

    def divergence(m):  # KL(tilted || N(m, tilted variance)) up to a constant
        return kl_gaussians(tilted_mean, tilted_variance, m, tilted_variance)

    assert agree(minimize_scalar(divergence, tol=1e-14).x, tilted_mean)
    far = [divergence(m) for m in (1e1, 1e2, 1e3, 1e4)]
    assert all(later > 10 * earlier for earlier, later in zip(far, far[1:]))  # grows without bound: no argmax


def test_bui_5():
    """Appendix B is about KL(q || p): eq. (17) gives it at alpha -> 0, where section 3.4 says exclusive."""
    p, q = norm(0.0, 1.0), norm(0.7, 0.6)

    def alpha_divergence(alpha):
        integrand = lambda f: alpha * p.pdf(f) + (1 - alpha) * q.pdf(f) - p.pdf(f) ** alpha * q.pdf(f) ** (1 - alpha)
        return quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-12)[0] / (alpha * (1 - alpha))

    exclusive, inclusive = kl_gaussians(0.7, 0.36, 0.0, 1.0), kl_gaussians(0.0, 1.0, 0.7, 0.36)
    near_zero = 2 * alpha_divergence(1e-3) - alpha_divergence(2e-3)  # the error is of second order in alpha
    assert abs(near_zero - exclusive) < 1e-4 * exclusive
    assert abs(near_zero - inclusive) > 0.1 * inclusive


def test_bui_7():
    """Table 2 prints 222/468 for australian: those are the counts of the first input, not of the class."""
    from pepcore import datasets

    data = datasets.load("australian")
    printed = {222, 468}
    assert set(np.unique(data.y, return_counts=True)[1]) == {307, 383} != printed
    assert set(np.unique(data.X[:, 0], return_counts=True)[1]) == printed
    pima = 267 / 767        # the most imbalanced set, says the text
    assert 222 / 690 < pima < 307 / 690


def test_bui_10():
    """Tables 1 and 2: D counts the columns of the files, and four sets of table 2 are a row short."""
    from pepcore.datasets.catalogue import registry

    printed = {"boston": 14, "concrete": 9, "energy": 9, "kin8nm": 9, "naval": 18, "yacht": 7, "power": 5, "wine_red": 12,
               "australian": 15, "breast_cancer": 11, "crabs": 7, "ionosphere": 35, "pima": 9, "sonar": 61}
    surplus = {name: D - registry[name].D for name, D in printed.items()}
    assert {name for name, more in surplus.items() if more != 1} == {"naval", "breast_cancer"}
    assert surplus["naval"] == surplus["breast_cancer"] == 2
    classes = {"breast_cancer": (239, 443), "ionosphere": (126, 224), "pima": (500, 267), "sonar": (111, 96)}
    assert all(sum(rows) == registry[name].N - 1 for name, rows in classes.items())


def one_pass(alpha, step):
    """The last mean and variance of a latent value that three noisy readings see, after one pass of Power EP from flat sites."""
    noise, tau, nu = 0.3, np.zeros(3), np.zeros(3)
    for n, y in enumerate((1.0, -0.4, 0.7)):
        precision, moment = 1 + tau.sum() - alpha * tau[n], nu.sum() - alpha * nu[n]      # the cavity; the prior is N(0, 1)
        tilted = precision + alpha / noise, moment + alpha * y / noise
        new = (tilted[0] - precision) / alpha, (tilted[1] - moment) / alpha     # the factor whose power alpha this is
        tau[n], nu[n] = (1 - step) * tau[n] + step * new[0], (1 - step) * nu[n] + step * new[1]
    return nu.sum() / (1 + tau.sum()), 1 / (1 + tau.sum())


@pytest.mark.parametrize("alpha", [0.2, 0.5])
def test_bui_11(alpha):
    """Remark 4: one pass gives the posterior with full steps, and with steps of length alpha at alpha = 1 only."""
    precision = 1 + 3 / 0.3
    truth = (1.3 / 0.3 / precision, 1 / precision)
    assert agree(one_pass(alpha, step=1.0), truth)
    assert agree(one_pass(1.0, step=1.0), truth)
    assert differ(one_pass(alpha, step=alpha), truth)


def csato_online(y, K_uu, K_uf, k_ff, noise):
    """One pass of csato2002's projected update with a fixed basis: alpha, C of mean = k'alpha, variance = k + k'C k."""
    alpha, C = np.zeros(len(K_uu)), np.zeros_like(K_uu)
    for n, y_n in enumerate(y):
        k = K_uf[:, n]
        variance = k_ff[n] + k @ C @ k
        q, r = (y_n - k @ alpha) / (noise + variance), -1 / (noise + variance)
        e = np.linalg.solve(K_uu, k)
        eta = 1 / (1 + (k_ff[n] - k @ e) * r)
        s = C @ k + e
        alpha, C = alpha + q * eta * s, C + r * eta * np.outer(s, s)
    return alpha, C


def test_bui_8(regression):
    """Csato's projection with a fixed basis gives the posterior of DTC and VFE, not of FITC."""
    y, K_uu, W, noise = (regression[key] for key in ("y", "K_uu", "W", "noise"))
    K_uf, h = K_uu @ W, np.diag(regression["D"])
    alpha, _ = csato_online(y, K_uu, K_uf, np.diag(regression["Q"] + regression["D"]), noise)

    def weights(d):  # K_uu^{-1} times the posterior mean of u with noise d
        return np.linalg.solve(K_uu + K_uf / d @ K_uf.T, K_uf @ (y / d))

    assert differ(alpha, weights(h + noise))  # FITC
    assert agree(alpha, weights(np.full(len(y), noise)))  # DTC, VFE


def test_bui_9(regression):
    """Eq. (62) needs the logarithm of the normaliser; eq. (62)'s text defines it as the normaliser itself.

    The scale of a fractional site must make its normaliser against the cavity that of the tilted distribution.
    """
    m_cavity, v_cavity, noise, y, alpha = 0.3, 0.7, 0.2, 1.1, 0.6

    def likelihood_power(f):
        return norm.pdf(y, f, np.sqrt(noise)) ** alpha

    log_tilted = np.log(quad(lambda f: likelihood_power(f) * norm.pdf(f, m_cavity, np.sqrt(v_cavity)), -15, 15,
                             epsabs=1e-13)[0])
    precision, shift = 1 / v_cavity + alpha / noise, m_cavity / v_cavity + alpha * y / noise
    normaliser = lambda P, p: np.sqrt(2 * np.pi / P) * np.exp(0.5 * p**2 / P)
    before, after = normaliser(1 / v_cavity, m_cavity / v_cavity), normaliser(precision, shift)
    truth = alpha * norm.logpdf(y, 0, np.sqrt(noise))  # the value at f = 0, where a site is its scale
    assert differ(log_tilted + before - after, truth)
    assert agree(log_tilted + np.log(before) - np.log(after), truth)


# csato2002 ------------------------------------------------------------------------------------------------------------


def test_csa_1():
    """The site with its height: the ratio of the density after and before one probit factor, both normalised."""
    m, v = 0.3, 1.4
    log_tilted = lambda mean: np.log(quad(lambda f: norm.cdf(f) * norm.pdf(f, mean, np.sqrt(v)), -15, 15, epsabs=1e-14)[0])
    step = 1e-2
    values = np.array([log_tilted(m + k * step) for k in (-3, -2, -1, 0, 1, 2, 3)])
    q = values @ [-1, 9, -45, 0, 45, -9, 1] / (60 * step)
    r = values @ [2, -27, 270, -490, 270, -27, 2] / (180 * step**2)

    u = np.linspace(-4, 4, 9)
    truth = norm.pdf(u, m + v * q, np.sqrt(v + v**2 * r)) / norm.pdf(u, m, np.sqrt(v))
    a, precision = m - q / r, -r / (1 + r * v)
    printed = (1 + r * v) ** -0.5 * np.exp(-0.5 * precision * (u - a) ** 2)
    assert differ(printed, truth)
    assert agree(printed * np.exp(-(q**2) / (2 * r)), truth)


def test_csa_2(regression):
    """Eq. (135): the targets of the projected process are the least-squares ones, not P't."""
    y, K, P, noise = regression["y"], regression["K_uu"], regression["W"].T, regression["noise"]
    truth = P.T @ np.linalg.solve(noise * np.eye(len(y)) + P @ K @ P.T, y)  # alpha by eq. (130), with Lambda and a of all data
    precision = P.T @ P / noise
    weights = lambda targets: np.linalg.solve(np.linalg.inv(precision) + K, targets)  # eq. (121) for the reduced process
    assert differ(weights(P.T @ y), truth)
    assert agree(weights(np.linalg.solve(P.T @ P, P.T @ y)), truth)

    representable = P @ np.arange(1.0, 6.0)  # targets that the basis vectors can represent must be reproduced
    assert differ(P @ P.T @ representable, representable)
    assert agree(P @ np.linalg.solve(P.T @ P, P.T @ representable), representable)


def test_csa_3(regression):
    """Pruning leaves a and Lambda alone, and not alpha: the process on four of five basis vectors, by conditioning."""
    y, K, P, noise = regression["y"], regression["K_uu"], regression["W"].T, regression["noise"]
    inner = np.linalg.inv(noise * np.eye(len(y)) + P @ K @ P.T)
    alpha, C = P.T @ inner @ y, -P.T @ inner @ P
    precision = np.linalg.inv(C + np.linalg.inv(K))  # of the coefficients of w, whose mean is alpha
    truth = np.linalg.solve(precision[:4, :4], (precision @ alpha)[:4])  # given that the fifth is zero
    assert differ(alpha[:4], truth)

    P_new = P @ K[:, :4] @ np.linalg.inv(K[:4, :4])
    inner = np.linalg.inv(noise * np.eye(len(y)) + P_new @ K[:4, :4] @ P_new.T)
    assert agree(P_new.T @ inner @ y, truth)  # eq. (130) with the old a = y and the old Lambda


def test_csa_4(regression):
    """Eq. (126) and the product of two projections: transposed and in the other order, or they do not exist."""
    K, P = regression["K_uu"], regression["W"].T
    cut = np.hstack([np.eye(4), np.zeros((4, 1))])  # the text's [I 0]
    inverse = np.linalg.inv(K[:4, :4])
    with pytest.raises(ValueError, match="mismatch"):
        K @ cut @ inverse
    removal = K @ cut.T @ inverse
    with pytest.raises(ValueError, match="mismatch"):
        removal @ P  # "P_new = P P_old"
    K_uf = K @ regression["W"]
    assert agree(P @ removal, np.linalg.solve(K[:4, :4], K_uf[:4]).T)  # directly on the four that stay


def test_csa_5(regression):
    """Eq. (129): lambda is a precision. Step 1 of section 4.6: on a pruned memory a site is taken out by eq. (132)."""
    y, K, P, noise = regression["y"], regression["K_uu"], regression["W"].T, regression["noise"]
    precision = np.linspace(0.5, 2.0, len(y)) / noise

    def process(P, precision, targets):  # alpha and C by eq. (130)
        inner = np.linalg.inv(np.diag(1 / precision) + P @ K @ P.T)
        return P.T @ inner @ targets, -P.T @ inner @ P

    # the most probable f = Phi alpha of the line above (129), by least squares
    root, weights = np.linalg.cholesky(K).T, np.sqrt(precision)
    truth = np.linalg.lstsq(np.vstack([root, weights[:, None] * (P @ K)]), np.append(np.zeros(5), weights * y), rcond=None)[0]
    assert differ(process(P, 1 / precision, y)[0], truth)  # lambda as the variance that (129) prints
    assert agree(process(P, precision, y)[0], truth)

    alpha, C = process(P, precision, y)
    i, rest = 7, np.arange(len(y)) != 7
    truth = process(P[rest], precision[rest], y[rest])
    g = P[i] + C @ K @ P[i]  # eq. (132): in the projected direction
    left = 1 - precision[i] * P[i] @ K @ g
    corrected = alpha + g * precision[i] * (P[i] @ K @ alpha - y[i]) / left, C + np.outer(g, g) * precision[i] / left
    assert agree(corrected[0], truth[0]) and agree(corrected[1], truth[1])

    # eq. (116): in the direction of the datum, which is no basis vector; so it joins them, with coefficient zero
    k = np.append(K @ P[i], (regression["Q"] + regression["D"])[i, i])
    larger_alpha, larger_C = np.append(alpha, 0.0), np.pad(C, (0, 1))
    g = np.eye(6)[5] + larger_C @ k
    left = 1 - precision[i] * (k[5] + k @ larger_C @ k)
    printed = larger_alpha + g * precision[i] * (k @ larger_alpha - y[i]) / left
    at_the_basis = np.column_stack([K, k[:5]])
    assert differ(at_the_basis @ printed, K @ truth[0])


# villacampa2017 -------------------------------------------------------------------------------------------------------


def test_vil_1():
    """The first natural parameter of the site that a comparison of two classes makes in the rival class k."""
    (m_y, v_y), (m_k, v_k) = (0.4, 0.5), (0.1, 0.8)  # cavities of a_y'v and a_k'v; the residual variances are in b
    b_y, b_k = v_y + 0.2, v_k + 0.3
    scale = np.sqrt(b_y + b_k)
    z = (m_y - m_k) / scale
    beta = norm.pdf(z) / norm.cdf(z)

    def tilted_moment(power):
        """E[f_k^power Phi((m_y - f_k)/...)] over the cavity of f_k, by quadrature."""
        width = np.sqrt(b_y + b_k - v_k)
        integrand = lambda f: f**power * norm.cdf((m_y - f) / width) * norm.pdf(f, m_k, np.sqrt(v_k))
        return quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-12)[0]

    mean = tilted_moment(1) / tilted_moment(0)
    variance = tilted_moment(2) / tilted_moment(0) - mean**2
    truth = mean / variance - m_k / v_k
    C1 = 1 / ((b_y + b_k) / (beta**2 + beta * z) - v_k)
    printed = beta / scale + C1 * m_k + beta / scale * C1 * v_k
    corrected = -beta / scale + C1 * m_k - beta / scale * C1 * v_k
    assert agree(1 / variance - 1 / v_k, C1)
    assert differ(printed, truth)
    assert agree(corrected, truth)


def test_vil_2():
    """The log evidence of given sites: the integral of prior and sites, each site as large as Z over its cavity."""
    rng = np.random.default_rng(4)
    C, M, N = 3, 2, 4
    labels = np.array([0, 1, 2, 1])
    K = [np.cov(rng.normal(size=(M, 9))) for _ in range(C)]
    factors = [(i, k) for i in range(N) for k in range(C) if k != labels[i]]
    log_Z = dict(zip(factors, rng.normal(size=len(factors))))
    # what a factor adds to the precision and the precision-mean of its two classes: rank one, as in equation (8)
    sites = {}
    for i, k in factors:
        for c in (labels[i], k):
            u = rng.normal(size=M)
            sites[i, k, c] = rng.uniform(0.2, 1) * np.outer(u, u), rng.normal() * u

    def natural(c, left_out=None):
        """Precision and precision-mean of class c, of the posterior or of a cavity."""
        own = [site for (i, k, owner), site in sites.items() if owner == c and (i, k) != left_out]
        return np.linalg.inv(K[c]) + sum(precision for precision, _ in own), sum(shift for _, shift in own)

    def normaliser(precision, shift):
        """g without its constant (M/2) log 2 pi, in the paper's form."""
        V = np.linalg.inv(precision)
        return 0.5 * log_det(V) + 0.5 * (V @ shift) @ precision @ (V @ shift)

    def log_expectation(precision, shift, site):
        """log E[exp(-f'Tf/2 + f'b)] for a Gaussian f, from its moments."""
        V = np.linalg.inv(precision)
        mean, (T, b) = V @ shift, site
        tilted = np.linalg.inv(precision + T)
        gain = b - T @ mean
        return 0.5 * (log_det(tilted) - log_det(V)) + b @ mean - 0.5 * mean @ T @ mean + 0.5 * gain @ tilted @ gain

    size = {f: log_Z[f] - sum(log_expectation(*natural(c, f), sites[*f, c]) for c in (labels[f[0]], f[1])) for f in factors}
    joint = [(sum(site[0] for key, site in sites.items() if key[2] == c),
              sum(site[1] for key, site in sites.items() if key[2] == c)) for c in range(C)]
    prior = [(np.linalg.inv(K[c]), np.zeros(M)) for c in range(C)]
    truth = sum(log_expectation(*prior[c], joint[c]) for c in range(C)) + sum(size.values())

    def evidence(log_of_prior, log_s):
        return sum(normaliser(*natural(c)) - 0.5 * log_of_prior(K[c]) for c in range(C)) + sum(map(log_s, factors))

    def corrected(f):
        return log_Z[f] + sum(normaliser(*natural(c, f)) - normaliser(*natural(c)) for c in (labels[f[0]], f[1]))

    assert agree(evidence(log_det, corrected), truth)
    assert differ(evidence(np.linalg.det, corrected), truth)
    assert differ(evidence(log_det, lambda f: log_Z[f]), truth)  # equation (61): the other terms cancel


def test_vil_3():
    """With two classes the product has one factor and is exact: the probability that the datum's class is the larger."""
    labels, mean, variance = np.array([1, 0]), np.array([[0.3, -0.2], [0.9, 0.4]]), np.array([[0.5, 0.8], [0.3, 0.6]])

    def phi(i, k):
        """Phi(alpha_i^k) of class k beside the datum's own; arrays are data by classes."""
        spread = np.sqrt(variance[i, labels[i]] + variance[i, k])
        return norm.cdf((mean[i, labels[i]] - mean[i, k]) / spread)

    def exact(i):
        own, (rival,) = labels[i], [k for k in range(2) if k != labels[i]]
        integrand = lambda f: norm.pdf(f, mean[i, own], np.sqrt(variance[i, own])) * norm.cdf(
            (f - mean[i, rival]) / np.sqrt(variance[i, rival]))
        return quad(integrand, -9, 9, epsabs=1e-13, epsrel=1e-12)[0]

    truth = np.array([exact(i) for i in range(2)])
    printed = np.array([np.prod([phi(i, k) for k in range(2) if k != labels[k]]) for i in range(2)])
    corrected = np.array([np.prod([phi(i, k) for k in range(2) if k != labels[i]]) for i in range(2)])
    assert agree(corrected, truth)
    assert differ(printed, truth)
    # eq. (36): the mean of f^k at x given the cavity's mean m of f^k at the rival's pseudo-inputs
    x, own, rival, m = np.array([0.3]), np.array([-1.0, 0.1]), np.array([0.8, 1.5]), np.array([0.7, -0.4])
    K = se_kernel(rival, rival)
    truth = se_kernel(x, rival) @ np.linalg.solve(K, m)
    assert differ(se_kernel(x, own) @ np.linalg.solve(K, m), truth)
    assert agree(np.linalg.solve(K, se_kernel(rival, x)).T @ m, truth)


def test_vil_4():
    """On Satellite's test data VI's E[log p] climbs from first to last on every curve, and log E[p] falls on all but one."""
    import pandas as pd

    runs = pd.read_csv(PAGE.parents[1] / "figures" / "results" / "vil_fig4.csv").query("method == 'vi'")
    checkpoints = sorted(int(name.removeprefix("nll_")) for name in runs if name.startswith("nll_"))
    log_mean = -runs[[f"nll_{number}" for number in checkpoints]].to_numpy()
    mean_log = runs[[f"expected_{number}" for number in checkpoints]].to_numpy()
    assert len(runs) == 60
    assert np.all(mean_log[:, -1] > mean_log[:, 0])
    assert (log_mean[:, -1] < log_mean.max(axis=1) - 0.01).sum() == 59


def test_vil_5():
    """The bound of eqs (14), (15) where it is exact, and the derivatives of log Z in the two cavity covariances."""
    K, noise, y = 1.3, 0.4, 0.7  # one datum, f = f-bar
    truth = norm.logpdf(y, 0, np.sqrt(K + noise))
    mean, variance = K / (K + noise) * y, K * noise / (K + noise)
    joint = lambda f: norm.pdf(y, f, np.sqrt(noise)) * norm.pdf(f, 0, np.sqrt(K))
    integral = quad(joint, -15, 15, epsabs=1e-13, epsrel=1e-12)[0]
    assert differ(integral, truth) and agree(np.log(integral), truth)
    expected = norm.logpdf(y, mean, np.sqrt(noise)) - 0.5 * variance / noise
    divergence = kl_gaussians(mean, variance, 0.0, K)
    assert expected + divergence > truth + 0.1  # no minus: no bound
    assert agree(expected - divergence, truth)

    own, rival = np.array([0.6, -0.3, 0.5]), np.array([0.2, 0.7])  # the vectors upsilon of the two classes
    V_own, V_rival, gap = np.diag([0.9, 0.5, 0.7]), np.diag([1.1, 0.4]), 0.8
    spread = lambda V_own, V_rival: own @ V_own @ own + rival @ V_rival @ rival + 0.5
    log_Z = lambda V_own, V_rival: norm.logcdf(gap / np.sqrt(spread(V_own, V_rival)))

    def slope(size, log_Z_of):  # by central differences, one element at a time
        units = 1e-4 * np.eye(size**2).reshape(size, size, size, size)
        return np.array([[(log_Z_of(E) - log_Z_of(-E)) / 2e-4 for E in row] for row in units])

    b = spread(V_own, V_rival)
    z = gap / np.sqrt(b)
    printed = -0.5 * norm.pdf(z) / norm.cdf(z) * z / b
    for truth, upsilon in ((slope(3, lambda E: log_Z(V_own + E, V_rival)), own),
                           (slope(2, lambda E: log_Z(V_own, V_rival + E)), rival)):
        assert differ(printed, truth)
        assert agree(printed * np.outer(upsilon, upsilon), truth)


# salimbeni2018 --------------------------------------------------------------------------------------------------------


@pytest.fixture
def decoupled():
    """Bases beta and gamma, a test point x, and q(f_beta) = N(m, S), with the exact process that they define."""
    rng = np.random.default_rng(2)
    beta, gamma, x = np.array([-1.0, 0.2, 1.1]), np.array([-0.4, 0.8, 1.9]), np.array([0.5])
    K, K_bg, K_g = se_kernel(beta, beta), se_kernel(beta, gamma), se_kernel(gamma, gamma)
    k_xb, k_xg = se_kernel(x, beta)[0], se_kernel(x, gamma)[0]
    root = 0.4 * rng.normal(size=(3, 3))
    S, m, a_gamma = root @ root.T + 0.1 * np.eye(3), rng.normal(size=3), rng.normal(size=3)
    # the process of appendix D: condition the prior on (f_gamma, f_beta), whose means are prescribed
    joint = np.block([[K_g, K_bg.T], [K_bg, K]])
    K_perpendicular = K_g - K_bg.T @ np.linalg.solve(K, K_bg)
    means = np.concatenate([K_perpendicular @ a_gamma + K_bg.T @ np.linalg.solve(K, m), m])
    mean = np.concatenate([k_xg, k_xb]) @ np.linalg.solve(joint, means)
    w = np.linalg.solve(K, k_xb)
    variance = se_kernel(x, x)[0, 0] - w @ k_xb + w @ S @ w
    return {"K": K, "K_bg": K_bg, "K_g": K_g, "k_xb": k_xb, "k_xg": k_xg, "k_xx": se_kernel(x, x)[0, 0], "S": S, "m": m,
            "a": a_gamma, "w": w, "mean": mean, "variance": variance, "perpendicular": K_perpendicular}


def test_sal_1(decoupled):
    w, S, K = decoupled["w"], decoupled["S"], decoupled["K"]
    assert differ(decoupled["k_xx"] - w @ (S - K) @ w, decoupled["variance"])
    assert agree(decoupled["k_xx"] + w @ (S - K) @ w, decoupled["variance"])


def test_sal_2(decoupled):
    w, S, K, K_bg = (decoupled[key] for key in ("w", "S", "K", "K_bg"))
    coupled = w @ decoupled["m"]
    assert differ((decoupled["k_xg"] - decoupled["k_xb"] @ K_bg) @ decoupled["a"] + coupled, decoupled["mean"])
    assert agree((decoupled["k_xg"] - w @ K_bg) @ decoupled["a"] + coupled, decoupled["mean"])
    assert differ(decoupled["k_xx"] - w @ (S - np.linalg.inv(K)) @ w, decoupled["variance"])
    assert agree(decoupled["k_xx"] + w @ (S - K) @ w, decoupled["variance"])


def test_sal_3(decoupled):
    """The mean is k_x,beta a_beta in one form and k_x,beta K^{-1} m_beta in the other."""
    K, m = decoupled["K"], decoupled["m"]
    a_beta = np.linalg.solve(K, m)
    assert differ(np.linalg.solve(K, a_beta), m)
    assert agree(K @ a_beta, m)
    # the covariance of eq. (26) is that given f_gamma and f_beta
    joint = np.block([[decoupled["K_g"], decoupled["K_bg"].T], [decoupled["K_bg"], K]])
    k_x = np.concatenate([decoupled["k_xg"], decoupled["k_xb"]])
    assert differ(decoupled["k_xx"] - k_x @ np.linalg.solve(joint, k_x), decoupled["variance"])


def test_sal_4():
    """The optimal mean weights are those at which the gradient of the loss vanishes."""
    rng = np.random.default_rng(3)
    X, basis, noise = rng.normal(size=15), np.array([-1.0, 0.0, 1.2]), 0.05
    y = np.sin(2 * X) + np.sqrt(noise) * rng.normal(size=15)
    K, K_aX = se_kernel(basis, basis), se_kernel(basis, X)

    def loss(a):  # what of the negative lower bound depends on the mean's weights
        return 0.5 * ((y - K_aX.T @ a) ** 2).sum() / noise + 0.5 * a @ K @ a

    precision = K_aX @ K_aX.T / noise + K
    truth = np.linalg.lstsq(np.vstack([K_aX.T / np.sqrt(noise), np.linalg.cholesky(K).T]),
                            np.concatenate([y / np.sqrt(noise), np.zeros(3)]), rcond=None)[0]
    printed, corrected = np.linalg.solve(precision, K_aX @ y), np.linalg.solve(precision, K_aX @ y / noise)
    assert differ(printed, truth) and loss(printed) > loss(truth) + 1
    assert agree(corrected, truth)


def test_sal_5(decoupled):
    """The covariance of f_gamma given f_beta, with bases of different size, where the printed products do not exist."""
    K, K_bg, K_g = decoupled["K"], decoupled["K_bg"][:, :2], decoupled["K_g"][:2, :2]
    joint = np.block([[K_g, K_bg.T], [K_bg, K]])
    truth = np.linalg.inv(np.linalg.inv(joint)[:2, :2])
    inverse = np.linalg.inv(K)
    with pytest.raises(ValueError, match="mismatch"):
        K_g - K_bg.T @ inverse @ K_bg.T  # eq. (16a)
    with pytest.raises(ValueError, match="mismatch"):
        K_g - K_bg @ inverse @ K_bg  # eq. (32)
    assert agree(K_g - K_bg.T @ inverse @ K_bg, truth)


def published(table):
    """The numbers of a table as printed, one row per data set: {column: (N,) array}."""
    path = PAGE.parents[1] / "figures" / "published" / f"salimbeni2018_{table}.csv"
    header, *rows = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    rows = [row for row in rows if row[1]]  # the last three are summaries
    return {name: np.array(column, dtype=float) for name, *column in list(zip(header, *rows, strict=True))[3:]}


def ranks_of(columns):
    """Average rank of every column over the rows, the smallest value first."""
    places = rankdata(np.stack(list(columns.values()), axis=1), axis=1).mean(axis=0)
    return dict(zip(columns, places, strict=True))


def test_sal_6():
    """Table 1 gives means, medians and ranks of the errors in table 4."""
    errors, losses = published("table4_test_error"), {name: -value for name, value in published("table3_test_loglik").items()}
    table_1 = {"Hybrid": (0.298, 0.225), "Decoupled": (0.361, 0.299), "Orth": (0.284, 0.211), "OrthNat": (0.282, 0.210)}

    def fits(column, name):
        return np.allclose((errors[column].mean(), np.median(errors[column])), table_1[name], rtol=0, atol=1e-3)

    assert fits("Orth", "Orth") and fits("OrthNat", "OrthNat")
    assert not fits("Hybrid", "Hybrid") and not fits("Decoupled", "Decoupled")
    assert fits("Decoupled", "Hybrid") and fits("Hybrid", "Decoupled")
    assert ranks_of(errors)["Hybrid"] == 8 and ranks_of(losses)["Decoupled"] == 8
    # two of the ranks in table 1 are those of the likelihoods
    for name, column, rank in (("CoupledNat_300", "CoupledNat_300", 5.0), ("Hybrid", "Decoupled", 6.417)):
        assert abs(ranks_of(losses)[name] - rank) < 1e-3
        assert abs(ranks_of(errors)[column] - rank) > 0.1


def test_sal_7():
    """Tables 5 and 6 count one input more than the sets have; the errors show that it was not the row's number."""
    from pepcore.datasets import registry

    folder, ours = PAGE.parents[1] / "figures", {"statlog-landsat": "satellite", "statlog-shuttle": "shuttle"}

    def rows(path):
        return [line.split(",") for line in (folder / path).read_text(encoding="utf-8").splitlines()[1:]]

    for table, sets, surplus in (("table3_test_loglik", 7, 0), ("table4_test_error", 7, 0), ("table5_accuracy", 9, 1),
                                 ("table6_test_loglik", 9, 1)):
        printed = {ours.get(name, name): (N, D) for name, N, D, *_ in rows(f"published/salimbeni2018_{table}.csv")}
        known = {name: info for name, info in registry.items() if printed.get(name, [""])[0] == str(info.N)}
        assert len(known) == sets
        assert all(int(printed[name][1]) == info.D + surplus for name, info in known.items())

    numbered = {row[1]: round(100 * float(row[3]), 1) for row in rows("results/salimbeni_magic.csv") if row[0] == "numbered"}
    assert numbered == {"CoupledNat_400": 0.2, "OrthNat": 0.4}
    (magic,) = (row for row in rows("published/salimbeni2018_table5_accuracy.csv") if row[0] == "magic")
    assert max(map(float, magic[4:])) < 90  # per cent right


def test_the_rows_of_magic_are_sorted_by_class():
    """With the rows' numbers among the inputs, as in sal-7, magic is easy for this reason."""
    from pepcore import datasets

    assert np.count_nonzero(np.diff(datasets.load("magic").y)) == 1


def test_sal_8():
    """The likelihoods of table 3 are those of Gaussian predictions whose root mean square errors table 4 has."""
    errors, likelihoods = published("table4_test_error"), published("table3_test_loglik")
    errors["Hybrid"], errors["Decoupled"] = errors["Decoupled"], errors["Hybrid"]  # erratum sal-6

    def apart(factor):
        return np.median([np.abs(likelihoods[name] + 0.5 * np.log(2 * np.pi * (factor * errors[name]) ** 2) + 0.5)
                          for name in errors])

    assert apart(1) < 0.02 and apart(np.sqrt(np.pi / 2)) > 0.2


def test_sal_9():
    """Table 3 has two pairs, one for each basis, in which the orthogonal one is behind."""
    likelihoods = published("table3_test_loglik")
    behind = {name: np.flatnonzero(likelihoods[name] < likelihoods[other])
              for name, other in (("OrthNat", "CoupledNat_300"), ("Orth", "Coupled_300"))}
    assert [len(rows) for rows in behind.values()] == [1, 1]
    assert likelihoods["OrthNat"][behind["OrthNat"][0]] == -0.4479 and likelihoods["Orth"][behind["Orth"][0]] == 0.6967


def test_sal_10(decoupled):
    """C.1: a basis alpha of another size than beta. C.4: the expectation parameter that belongs to H eta + b."""
    S, K, K_ba, a = decoupled["S"], decoupled["K"], decoupled["K_bg"][:, :2], decoupled["a"][:2]
    with pytest.raises(ValueError, match="mismatch"):
        np.linalg.solve(S, K @ a)
    # Sigma^{-1} mu seen from beta, Psi_beta' (Psi_beta S^{-1} Psi_beta') Psi_alpha a, must be Psi_beta' Psi_beta j
    rng = np.random.default_rng(5)
    beta, alpha = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))  # explicit features as columns
    truth = beta.T @ (beta @ np.linalg.solve(S, beta.T @ (alpha @ a)))
    assert agree(beta.T @ beta @ np.linalg.solve(S, (beta.T @ alpha) @ a), truth)
    assert K_ba.shape == (beta.T @ alpha).shape

    # a Bernoulli family of three: A(eta) = sum log(1 + exp eta), theta = 1 / (1 + exp(-eta))
    H, b, eta_tilde = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    A_tilde = lambda at: np.logaddexp(0, H @ at + b).sum()
    truth = np.array([(A_tilde(eta_tilde + e) - A_tilde(eta_tilde - e)) / 2e-5 for e in 1e-5 * np.eye(3)])
    eta = H @ eta_tilde + b
    assert differ(H.T @ eta, truth)
    assert agree(H.T @ (1 / (1 + np.exp(-eta))), truth)


# The page -------------------------------------------------------------------------------------------------------------


def test_every_entry_of_the_page_has_a_test_and_the_other_way_round():
    on_the_page = set(re.findall(r"^\(errata-(\w+-\d+)\)=", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals()
              if re.fullmatch(r"test_[a-z]{3}_\d+", name)}
    assert on_the_page == tested
    assert len(tested) >= 16
