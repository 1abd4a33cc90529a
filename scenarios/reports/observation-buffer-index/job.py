"""Off-policy training: samplers in processes of their own send trajectories, the trainer learns from a replay buffer"""

import multiprocessing
import sys

from sampler import run_sampler

SAMPLERS = 2


def main():
    context = multiprocessing.get_context("spawn")
    trajectories = context.Queue(maxsize=8)
    samplers = [
        context.Process(target=run_sampler, args=(number, trajectories), daemon=True) for number in range(SAMPLERS)
    ]
    for sampler in samplers:
        sampler.start()

    from trainer import train  # only here: a sampler has no use for torch

    train(trajectories, samplers)
    for sampler in samplers:
        if sampler.exitcode:
            print(f"{sampler.name} ended with {sampler.exitcode}", flush=True)
            sys.exit(1)


if __name__ == "__main__":
    main()
