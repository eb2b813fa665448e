"""What GPflow does in the benchmarks: everything compiled, as its manual advises."""

import os
import time

import gpflow
import numpy as np
import tensorflow as tf

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)
MODELS = {"vfe": gpflow.models.SGPR, "fitc": gpflow.models.GPRFITC}


def sparse(X, y, Z, method):
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(X.shape[1]))
    return MODELS[method]((X, y[:, None]), kernel, inducing_variable=Z.copy(), noise_variance=0.1)


def regression(X, y, Z, done, method):
    model = sparse(X, y, Z, method)

    @tf.function
    def evaluate():
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return loss, tape.gradient(loss, model.trainable_variables)

    while True:
        model.kernel.variance.unconstrained_variable.assign_add(1e-7)
        loss, gradient = evaluate()
        done([-float(loss), float(gradient[-1])])


def class_step(X, y, Z, done, natural):
    """A step on a batch of 200 rows: Adam, and natural gradients for q if `natural`."""
    C = int(y.max()) + 1
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(X.shape[1], np.sqrt(X.shape[1] / 8)))
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.MultiClass(C), inducing_variable=Z.copy(), num_latent_gps=C, num_data=len(X)
    )
    rows = tf.data.Dataset.from_tensor_slices((X, y[:, None])).repeat().shuffle(len(X), seed=0).batch(200)
    batches = iter(rows)
    adam = tf.optimizers.Adam(0.01)
    if natural:
        gpflow.set_trainable(model.q_mu, False)
        gpflow.set_trainable(model.q_sqrt, False)
        rule = gpflow.optimizers.NaturalGradient(gamma=1e-4)  # with 0.001 and more it ends in NaN

    variables = model.trainable_variables

    @tf.function
    def step():
        batch = next(batches)
        with tf.GradientTape() as tape:
            loss = model.training_loss(batch)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        if natural:
            rule.minimize(lambda: model.training_loss(batch), [(model.q_mu, model.q_sqrt)])

    while True:
        step()
        done()


class Traced(gpflow.optimizers.Scipy):
    """GPflow's own L-BFGS, with a note of time and evidence after every evaluation."""

    def eval_func(self, *arguments, **options):
        evaluate = super().eval_func(*arguments, **options)

        def traced(x):
            value, gradient = evaluate(x)
            self.trace.append((time.perf_counter() - self.begun, -float(value)))
            return value, gradient

        return traced


def learn(X, y, Z, done, evaluations):
    """Complete fits; each compiles its model, as every new model in GPflow does."""
    while True:
        optimiser = Traced()
        optimiser.begun, optimiser.trace = time.perf_counter(), []
        model = sparse(X, y, Z, "vfe")
        optimiser.minimize(
            model.training_loss, model.trainable_variables, options={"maxfun": evaluations, "maxiter": evaluations}
        )
        done(optimiser.trace)
