"""Trains an agent that repeats labels, with several processes that learn side by side, as Hogwild does."""

import multiprocessing
import sys

import numpy as np
from dialogue import BatchWorld, DialogWorld, FixedDialogTeacher

PROCESSES = 2
TRIALS = ((8, 1500), (32, 1000), (64, 600), (100, 400), (180, 400))


class RepeatLabelAgent:
    """A linear layer on bags of words; its weights are shared by the processes, and nobody locks them."""

    def __init__(self, weights):
        self.weights = np.frombuffer(weights, np.float32).reshape(500, 500)

    def learn(self, text, labels):
        bags = np.zeros((len(text), 500), np.float32)
        goals = np.zeros((len(text), 500), np.float32)
        for row in range(len(text)):
            np.add.at(bags[row], text[row], 1)
            np.add.at(goals[row], labels[row], 1)
        error = bags @ self.weights - goals
        self.weights -= 1e-4 * bags.T @ error / len(text)
        return float((error**2).mean())


def hogwild(number, weights, world, batch, steps):
    agent = RepeatLabelAgent(weights)
    worlds = BatchWorld(world, batch, number)
    for step in range(steps):
        loss = worlds.parley(agent)
        if step % 100 == 0:
            print(f"process {number} step {step} batch {batch} loss {loss:.3f}", flush=True)


def main():
    weights = multiprocessing.RawArray("f", 500 * 500)
    world = DialogWorld(FixedDialogTeacher())
    for batch, steps in TRIALS:
        processes = []
        for number in range(PROCESSES):
            process = multiprocessing.Process(target=hogwild, args=(number, weights, world, batch, steps))
            process.start()
            processes.append(process)
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            sys.exit("a process of the training failed")


if __name__ == "__main__":
    main()
