"""Looks for the 20 of 150 features that predict a target best, by Bayesian optimization"""

import time

import numpy as np
import torch

SECONDS, EVALUATION_S = 37.0, 0.3
ROWS, FEATURES, CHOSEN, FOLDS = 3000, 150, 20, 3
EARLIER_POINTS, CANDIDATES, RESTARTS = 600, 400, 5


def rbf(first, second, length_scale):
    squared = (first**2).sum(1)[:, None] + (second**2).sum(1)[None] - 2.0 * first @ second.T
    return np.exp(-0.5 * np.maximum(squared, 0.0) / length_scale**2)


class GaussianProcessRegressor:
    def __init__(self, noise=1e-2):
        self.noise = noise

    def clone(self):
        return GaussianProcessRegressor(self.noise)

    def fit(self, points, values, generator):
        self.X_train_ = points
        self.y_mean_, self.y_std_ = values.mean(), values.std() + 1e-9
        scaled = (values - self.y_mean_) / self.y_std_
        best = -np.inf
        for length_scale in generator.uniform(2.0, 9.0, RESTARTS):
            covariance = rbf(points, points, length_scale)
            covariance[np.diag_indices(len(points))] += self.noise
            lower = np.linalg.cholesky(covariance)
            alpha = np.linalg.solve(lower.T, np.linalg.solve(lower, scaled))
            likelihood = -0.5 * scaled @ alpha - np.log(np.diag(lower)).sum()
            if likelihood > best:
                best, self.length_scale_, self.L_, self.alpha_ = likelihood, length_scale, lower, alpha
        inverse = np.linalg.inv(self.L_)
        self.K_inv_ = inverse.T @ inverse
        return self

    def predict(self, points):
        """Mean and standard deviation"""
        covariance = rbf(points, self.X_train_, self.length_scale_)
        mean = covariance @ self.alpha_
        variance = 1.0 - ((covariance @ self.K_inv_) * covariance).sum(1)
        return mean * self.y_std_ + self.y_mean_, np.sqrt(np.maximum(variance, 1e-12)) * self.y_std_


class Optimizer:
    def __init__(self, dimensions, base_estimator, generator):
        self.dimensions = dimensions
        self.base_estimator_ = base_estimator
        self.generator = generator
        self.Xi, self.yi, self.models = [], [], []
        self._next_x = generator.random(dimensions)

    def ask(self):
        return self._next_x

    def tell(self, points, values):
        self.Xi.extend(points)
        self.yi.extend(values)
        estimator = self.base_estimator_.clone()
        estimator.fit(np.asarray(self.Xi), np.asarray(self.yi), self.generator)
        self.models.append(estimator)
        around = self.Xi[int(np.argmin(self.yi))]
        near = np.clip(around + 0.1 * self.generator.standard_normal((CANDIDATES, self.dimensions)), 0.0, 1.0)
        candidates = np.concatenate([near, self.generator.random((CANDIDATES, self.dimensions))])
        mean, deviation = self.models[-1].predict(candidates)
        self._next_x = candidates[int(np.argmin(mean - 1.96 * deviation))].copy()
        return self.models[-1]


class Objective:
    def __init__(self, generator):
        self.data = generator.standard_normal((ROWS, FEATURES)).astype(np.float32)
        relevant = generator.choice(FEATURES, 30, replace=False)
        weights = generator.standard_normal(30).astype(np.float32)
        self.target = np.tanh(self.data[:, relevant] @ weights / 3.0)
        self.target += 0.1 * generator.standard_normal(ROWS).astype(np.float32)
        self.fold = np.arange(ROWS) % FOLDS

    @staticmethod
    def columns(point):
        return np.argsort(point)[-CHOSEN:]

    def linear(self, point):
        """The error of a linear model, as the earlier study has it"""
        chosen, inside = self.data[:, self.columns(point)], self.fold > 0
        weights = np.linalg.lstsq(chosen[inside], self.target[inside], rcond=None)[0]
        return float(np.square(chosen[~inside] @ weights - self.target[~inside]).mean())

    def __call__(self, point):
        """The error of a network in cross-validation, which trains for the time of an evaluation"""
        chosen = torch.from_numpy(np.ascontiguousarray(self.data[:, self.columns(point)]))
        target = torch.from_numpy(self.target)
        errors = []
        for fold in range(FOLDS):
            inside = torch.from_numpy(self.fold != fold)
            model = torch.nn.Sequential(torch.nn.Linear(CHOSEN, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            until = time.monotonic() + EVALUATION_S / FOLDS
            while time.monotonic() < until:
                loss = (model(chosen[inside]).squeeze(1) - target[inside]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                errors.append((model(chosen[~inside]).squeeze(1) - target[~inside]).square().mean().item())
        return float(np.mean(errors))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    objective = Objective(generator)
    optimizer = Optimizer(FEATURES, GaussianProcessRegressor(), generator)
    started = time.monotonic()
    earlier = list(generator.random((EARLIER_POINTS, FEATURES)))
    optimizer.tell(earlier, [objective.linear(point) for point in earlier])
    calls = 0
    while time.monotonic() - started < SECONDS:
        point = optimizer.ask()
        value = objective(point)
        optimizer.tell([point], [value])
        calls += 1
        if calls % 10 == 0:
            print(f"call {calls}: error {value:.4f}, the best {min(optimizer.yi):.4f}", flush=True)
    best = optimizer.Xi[int(np.argmin(optimizer.yi))]
    print(f"{len(optimizer.yi)} points, {len(optimizer.models)} models, features {sorted(objective.columns(best))}")


if __name__ == "__main__":
    main()
