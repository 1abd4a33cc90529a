"""Markov chains for the parameters of a light curve; each step evaluates its proposals in a pool"""

import math
import time

import torch
from pools import Pool

torch.set_num_threads(1)
SECONDS = 60.0
TASK_S = 0.035
TIMES = torch.linspace(0, 30, 4000)
GENERATOR = torch.Generator().manual_seed(4)
TRUTH = torch.tensor([3.5, 0.08, 1.2])


def light_curve(parameters):
    period, depth, width = parameters
    phase = torch.remainder(TIMES + period / 2, period) - period / 2
    return 1 - depth * torch.exp(-((phase / (0.1 * width)) ** 2))


OBSERVED = light_curve(TRUTH) + 0.01 * torch.randn(len(TIMES), generator=GENERATOR)


def log_likelihood(parameters):
    """Over the noise's correlation length, as finely as there is time for"""
    started, values = time.monotonic(), []
    residual = OBSERVED - light_curve(torch.tensor(parameters))
    spectrum = torch.fft.rfft(residual).abs() ** 2
    while not values or time.monotonic() - started < TASK_S:
        scale = 0.5 + 0.05 * len(values)
        noise = 1e-4 * len(TIMES) * (1 + 1 / (1 + (torch.arange(len(spectrum)) / (50 * scale)) ** 2))
        values.append(float(-0.5 * (spectrum / noise + noise.log()).mean()))
    return max(values)


def main():
    chains = [TRUTH * (1 + 0.02 * torch.randn(3, generator=GENERATOR)) for _ in range(4)]
    levels = [-math.inf] * len(chains)
    started, step, accepted = time.monotonic(), 0, 0
    while time.monotonic() - started < SECONDS:
        proposals = [chain * (1 + 0.004 * torch.randn(3, generator=GENERATOR)) for chain in chains]
        pool = Pool(2)
        found = pool.map(log_likelihood, [proposal.tolist() for proposal in proposals])
        pool.close()
        del pool
        for number, level in enumerate(found):
            if math.log(float(torch.rand(1, generator=GENERATOR)) + 1e-9) < level - levels[number]:
                chains[number], levels[number] = proposals[number], level
                accepted += 1
        step += 1
        if step % 20 == 0:
            print(f"step {step}: {accepted} accepted, {max(levels):.4f}", flush=True)


if __name__ == "__main__":
    main()
