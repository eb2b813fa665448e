"""Likelihoods p(y|f): what inference asks of them is one function, `log_moment`.

l_α(m, v) = (1/α) log E[p(y|f)^α] under f ~ N(m, v), with the limit E[log p] at α = 0, and its first two derivatives in
m: that is all that Power EP needs, for every α in [0, 1]. A new likelihood derives from `Likelihood` and defines
`derivatives` and `predict`; its moments then come from quadrature. If log p is not concave in f, or bends more sharply
than a probit, define `quadrature_hints` too: without them the moments may be wrong, and no warning says so. All that
differs between data must be in y, since `derivatives` is called with any part of them.

* `Gaussian`: real y, log p(y|f) = −(y − f)²/(2 noise) up to a constant;
* `StudentT`: real y with outliers, −½ (ν + 1) log(1 + (y − f)²/(ν scale²));
* `Probit`: y in {−1, +1}, log Φ(y f);
* `Logit`: y in {−1, +1}, −log(1 + exp(−y f));
* `Poisson`: counts y, y f − exp(f).
"""

from pepcore.likelihoods.scalar import Gaussian, Likelihood, Logit, Poisson, Probit, StudentT

__all__ = ["Gaussian", "Likelihood", "Logit", "Poisson", "Probit", "StudentT"]
