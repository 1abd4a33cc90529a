"""Exact Gaussian processes: a kernel, a model, and the strategy that predicts from the training data"""

import functools

import torch
from torch import nn

from memoize import cached, clear_cache_hook


class detach_test_caches:
    state = True

    def __init__(self, state):
        self.new = state

    def __enter__(self):
        self.old, detach_test_caches.state = detach_test_caches.state, self.new

    def __exit__(self, *exception):
        detach_test_caches.state = self.old


class RBFKernel(nn.Module):
    def __init__(self, dimensions):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(dimensions, dtype=torch.double))
        self.raw_outputscale = nn.Parameter(torch.zeros((), dtype=torch.double))

    def forward(self, first, second):
        lengthscale = nn.functional.softplus(self.raw_lengthscale)
        first, second = first / lengthscale, second / lengthscale
        squares = first.pow(2).sum(-1).unsqueeze(-1) + second.pow(2).sum(-1).unsqueeze(-2)
        squares = squares - 2 * first @ second.transpose(-1, -2)
        return nn.functional.softplus(self.raw_outputscale) * torch.exp(-0.5 * squares.clamp_min(0))


class DefaultPredictionStrategy:
    def __init__(self, train_inputs, train_labels, kernel, noise):
        self.train_inputs, self.train_labels, self.kernel = train_inputs, train_labels, kernel
        eye = torch.eye(train_inputs.shape[-2], dtype=torch.double)
        self.lik_train_train_covar = kernel(train_inputs, train_inputs) + noise * eye

    @property
    @cached("mean_cache")
    def mean_cache(self):
        factor = torch.linalg.cholesky(self.lik_train_train_covar)
        mean_cache = torch.cholesky_solve(self.train_labels.unsqueeze(-1), factor)
        if detach_test_caches.state:
            mean_cache = mean_cache.detach()
        if mean_cache.grad_fn is not None:
            wrapper = functools.partial(clear_cache_hook, self)
            functools.update_wrapper(wrapper, clear_cache_hook)
            mean_cache.grad_fn.register_hook(wrapper)
        return mean_cache

    def exact_predictive_mean(self, inputs):
        return (self.kernel(inputs, self.train_inputs) @ self.mean_cache).squeeze(-1)


class ExactGP(nn.Module):
    def __init__(self, train_inputs, train_labels, kernel, noise=1e-2):
        super().__init__()
        self.train_inputs, self.train_labels = train_inputs, train_labels
        self.kernel, self.noise = kernel, noise
        self.prediction_strategy = None

    def negative_log_likelihood(self):
        eye = torch.eye(len(self.train_inputs), dtype=torch.double)
        factor = torch.linalg.cholesky(self.kernel(self.train_inputs, self.train_inputs) + self.noise * eye)
        solved = torch.cholesky_solve(self.train_labels.unsqueeze(-1), factor).squeeze(-1)
        return (0.5 * self.train_labels @ solved + factor.diagonal().log().sum()) / len(self.train_inputs)

    def forward(self, inputs):
        if self.prediction_strategy is None:
            self.prediction_strategy = DefaultPredictionStrategy(
                self.train_inputs, self.train_labels, self.kernel, self.noise
            )
        return self.prediction_strategy.exact_predictive_mean(inputs)

    def fantasize(self, inputs, samples, generator):
        """A batch of models, each with the new inputs and outputs that were drawn for them"""
        with torch.no_grad():
            means = self(inputs)
        drawn = means + 0.3 * torch.randn(samples, len(inputs), dtype=torch.double, generator=generator)
        train_inputs = torch.cat([self.train_inputs, inputs]).expand(samples, -1, -1)
        train_labels = torch.cat([self.train_labels.expand(samples, -1), drawn], 1)
        return ExactGP(train_inputs, train_labels, self.kernel, self.noise).eval()
