"""The models of the page "From GPflow, GPy, GPyTorch or scikit-learn", written for GPyTorch."""

import gpytorch
import torch
from record import show

from data import X, Xs, Z, Z_mean, labels, y, ys

values = {}

# [kernel]
torch.set_default_dtype(torch.float64)
X, y, labels, Z, Z_mean, Xs, ys = map(
    torch.as_tensor, (X, y, labels, Z, Z_mean, Xs, ys)
)


def kernel():
    shape = gpytorch.kernels.RBFKernel(ard_num_dims=2)
    shape.lengthscale = torch.tensor([[0.5, 0.7]])
    scaled = gpytorch.kernels.ScaleKernel(shape)
    scaled.outputscale = 1.0
    return scaled


def noise():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.1
    return likelihood


class Regression(gpytorch.models.ExactGP):
    def __init__(self, covariance, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = covariance

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(inputs), self.covar_module(inputs)
        )


# [end]

# [exact]
model = Regression(kernel(), noise())
evidence = gpytorch.ExactMarginalLogLikelihood(model.likelihood, model)
log_evidence = evidence(model(X), y) * len(y)
# [end]
values["exact"] = log_evidence.item()

# [vfe]
likelihood = noise()
sparse = gpytorch.kernels.InducingPointKernel(
    kernel(), inducing_points=Z, likelihood=likelihood
)
model = Regression(sparse, likelihood)
evidence = gpytorch.ExactMarginalLogLikelihood(likelihood, model)
log_evidence = evidence(model(X), y) * len(y)
# [end]
values["vfe_bare"] = log_evidence.item()

# [learn]
sparse.inducing_points.requires_grad_(False)
optimiser = torch.optim.LBFGS(
    model.parameters(), max_iter=500, line_search_fn="strong_wolfe",
    tolerance_grad=1e-9, tolerance_change=1e-14,
)


def closure():
    optimiser.zero_grad()
    loss = -evidence(model(X), y)
    loss.backward()
    return loss


optimiser.step(closure)
log_evidence = evidence(model(X), y) * len(y)
# [end]
values["learn_bare"] = log_evidence.item()

likelihood = noise()
sparse = gpytorch.kernels.InducingPointKernel(kernel(), inducing_points=Z, likelihood=likelihood)
model = Regression(sparse, likelihood)
model.eval()
likelihood.eval()
with torch.no_grad():
    values["corrected_mean"] = model(Xs).mean
model = Regression(sparse, likelihood)  # a model keeps what it has predicted with
# [predict]
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.sgpr_diagonal_correction(False):
    latent = model(Xs)
    observed = likelihood(latent)
mean, variance = latent.mean, latent.variance
log_density = torch.distributions.Normal(mean, observed.stddev).log_prob(ys)
# [end]
values |= {"mean_bare": mean, "variance_without_h": variance}


# [classify]
class Variational(gpytorch.models.ApproximateGP):
    def __init__(self):
        q = gpytorch.variational.NaturalVariationalDistribution(len(Z))
        super().__init__(
            gpytorch.variational.VariationalStrategy(
                self, Z, q, learn_inducing_locations=False
            )
        )
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = kernel()

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(inputs), self.covar_module(inputs)
        )


model = Variational()
probit = gpytorch.likelihoods.BernoulliLikelihood()
bound = gpytorch.mlls.VariationalELBO(probit, model, num_data=len(X))
natural = gpytorch.optim.NGD(
    model.variational_parameters(), num_data=len(X), lr=0.5
)
for _ in range(60):
    natural.zero_grad()
    loss = -bound(model(X), (labels + 1) / 2)
    loss.backward()
    natural.step()
elbo = bound(model(X), (labels + 1) / 2) * len(X)
# [end]
values["vi_probit"] = elbo.item()
model.eval()
with torch.no_grad():
    values["vi_probability"] = probit(model(Xs)).probs

# [natural]
model = Variational()
likelihood = noise()
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
natural = gpytorch.optim.NGD(
    model.variational_parameters(), num_data=len(X), lr=1.0
)
loss = -bound(model(X), y)
loss.backward()
natural.step()
elbo = bound(model(X), y) * len(X)
# [end]
values["natural_gaussian"] = elbo.item()


# [decoupled]
class Orthogonal(gpytorch.models.ApproximateGP):
    def __init__(self):
        q = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
        covariance = gpytorch.variational.VariationalStrategy(
            self, Z, q, learn_inducing_locations=False
        )
        delta = gpytorch.variational.DeltaVariationalDistribution(len(Z_mean))
        super().__init__(
            gpytorch.variational.OrthogonallyDecoupledVariationalStrategy(
                covariance, Z_mean, delta
            )
        )
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = kernel()

    forward = Variational.forward


model = Orthogonal()
likelihood = noise()
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
for name, parameter in model.named_parameters():
    parameter.requires_grad_("_variational" in name)
learnt = [p for p in model.parameters() if p.requires_grad]
optimiser = torch.optim.LBFGS(
    learnt, max_iter=300, max_eval=400, line_search_fn="strong_wolfe",
    tolerance_grad=1e-10, tolerance_change=1e-15,
)


def loss_of_all():
    optimiser.zero_grad()
    loss = -bound(model(X), y)
    loss.backward()
    return loss


optimiser.step(loss_of_all)
elbo = bound(model(X), y) * len(X)
# [end]
values["decoupled"] = elbo.item()
values["decoupled_slope"] = max(p.grad.abs().max().item() for p in learnt)

# The same q under the divergence of salimbeni2018: with C the posterior covariance of the coupled part, the mean
# C(x, gamma) a moves the weights v by S A_gamma a, and the residual by (K - Q)(x, gamma) a.
with torch.no_grad():
    coupled = model.variational_strategy.model
    a = model.variational_strategy.variational_distribution.mean
    gamma, beta = model.variational_strategy.inducing_points, coupled.inducing_points
    q = coupled.variational_distribution
    root = torch.linalg.cholesky(model.covar_module(beta).to_dense() + 1e-6 * torch.eye(len(beta)))
    A = torch.linalg.solve_triangular(root, model.covar_module(beta, gamma).to_dense(), upper=False)
    residual = model.covar_module(gamma).to_dense() - A.T @ A
    moved = q.mean + q.covariance_matrix @ (A @ a)
    Normal, eye = torch.distributions.MultivariateNormal, torch.eye(len(beta))
    kl = torch.distributions.kl_divergence(
        Normal(moved, q.covariance_matrix), Normal(torch.zeros(len(beta)), eye)
    ) + 0.5 * a @ residual @ a
    values["decoupled_of_paper"] = (elbo + model.variational_strategy.kl_divergence() - kl).item()

show("GPyTorch", gpytorch.__version__, values)
