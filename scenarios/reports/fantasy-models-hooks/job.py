"""Bayesian optimization with a look ahead: candidates are judged by the models that would follow from them"""

import math
import time

import torch

from gp import ExactGP, RBFKernel, detach_test_caches

torch.set_num_threads(1)
DIMENSIONS, START, BATCH, SAMPLES, POINTS = 10, 112, 4, 10, 200
CANDIDATES, ROUNDS, CANDIDATE_S = 16, 5, 0.32


def objective(points):
    return -(points - 0.4).pow(2).sum(-1) + 0.3 * torch.cos(3 * math.pi * points).mean(-1)


def fit(model, steps=25):
    optimizer = torch.optim.Adam(model.kernel.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.negative_log_likelihood()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def look_ahead(model, candidate, generator):
    """The mean of the best value that is expected once the candidate was observed"""
    until, values = time.monotonic() + CANDIDATE_S, []
    fantasies = model.fantasize(candidate, SAMPLES, generator)
    with detach_test_caches(False):
        while not values or time.monotonic() < until:
            points = torch.rand(POINTS, DIMENSIONS, dtype=torch.double, generator=generator)
            values.append(fantasies(points).max(-1).values.mean().item())
    return sum(values) / len(values)


def main():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(START, DIMENSIONS, dtype=torch.double, generator=generator)
    labels, kernel = objective(inputs), RBFKernel(DIMENSIONS)
    for number in range(ROUNDS):
        scaled = (labels - labels.mean()) / labels.std()
        loss = fit(ExactGP(inputs, scaled, kernel).train())
        model, best = ExactGP(inputs, scaled, kernel).eval(), (-math.inf, None)
        for _ in range(CANDIDATES):
            candidate = torch.rand(BATCH, DIMENSIONS, dtype=torch.double, generator=generator)
            best = max(best, (look_ahead(model, candidate, generator), candidate), key=lambda pair: pair[0])
        inputs, labels = torch.cat([inputs, best[1]]), torch.cat([labels, objective(best[1])])
        print(f"round {number}: loss {loss:.3f}, best {labels.max():.4f} of {len(labels)}", flush=True)


if __name__ == "__main__":
    main()
