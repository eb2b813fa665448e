"""What GPyTorch does in the benchmarks, in double precision as the others."""

import os
import time
import warnings

import gpytorch
import torch

warnings.filterwarnings("ignore")  # its own uses of deprecated functions
torch.set_default_dtype(torch.float64)
torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


class Sparse(gpytorch.models.ExactGP):
    def __init__(self, X, y, Z, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.InducingPointKernel(scaled(X.shape[1], 1.0), Z, likelihood)

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


def scaled(D, lengthscale):
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=D))
    kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, lengthscale
    return kernel


def gaussian():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.1
    return likelihood


def sparse(X, y, Z):
    X, y, Z = map(torch.as_tensor, (X, y, Z.copy()))
    model = Sparse(X, y, Z, gaussian())
    evidence = gpytorch.ExactMarginalLogLikelihood(model.likelihood, model)

    def evaluate():
        model.zero_grad()
        loss = -evidence(model(X), y) * len(y)
        loss.backward()
        return loss

    return model, evaluate


def regression(X, y, Z, done):
    model, evaluate = sparse(X, y, Z)
    while True:
        with torch.no_grad():
            model.covar_module.base_kernel.raw_outputscale += 1e-7
        loss = evaluate()
        done([-loss.item(), model.likelihood.noise_covar.raw_noise.grad.item()])


def learn(X, y, Z, done, evaluations):
    while True:
        begun, trace = time.perf_counter(), []
        model, evaluate = sparse(X, y, Z)
        optimiser = torch.optim.LBFGS(
            model.parameters(), max_iter=evaluations, max_eval=evaluations, line_search_fn="strong_wolfe"
        )

        def traced():
            loss = evaluate()  # noqa: B023 - used within this fit only
            trace.append((time.perf_counter() - begun, -loss.item()))  # noqa: B023
            return loss

        optimiser.step(traced)
        done(trace)


class Orthogonal(gpytorch.models.ApproximateGP):
    def __init__(self, beta, gamma, natural):
        kind = "NaturalVariationalDistribution" if natural else "CholeskyVariationalDistribution"
        q = getattr(gpytorch.variational, kind)(len(beta))
        coupled = gpytorch.variational.VariationalStrategy(self, beta, q)
        delta = gpytorch.variational.DeltaVariationalDistribution(len(gamma))
        super().__init__(gpytorch.variational.OrthogonallyDecoupledVariationalStrategy(coupled, gamma, delta))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = scaled(beta.shape[1], 2.0)

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


def orthogonal_step(X, y, beta, gamma, done, natural):
    """A step on q, kernel, both bases and the noise, on a batch of 1024 rows."""
    X, y, beta, gamma = map(torch.as_tensor, (X, y, beta, gamma))
    model, likelihood = Orthogonal(beta, gamma, natural), gaussian()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    everything = [*model.parameters(), *likelihood.parameters()]
    rules = []
    if natural:
        q = list(model.variational_strategy.model.variational_parameters())
        rules.append(gpytorch.optim.NGD(q, num_data=len(X), lr=0.001))  # with larger rates it ends in NotPSDError
        everything = [p for p in everything if all(p is not moved for moved in q)]
    rules.append(torch.optim.Adam(everything, lr=0.001))
    while True:
        rows = torch.randperm(len(X))[:1024]
        for rule in rules:
            rule.zero_grad()
        (-bound(model(X[rows]), y[rows])).backward()
        for rule in rules:
            rule.step()
        done()
