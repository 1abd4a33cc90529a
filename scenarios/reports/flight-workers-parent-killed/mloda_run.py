"""Computes feature groups with ParallelizationModes.MULTIPROCESSING: each worker holds a table and waits for commands"""

import multiprocessing
import os
import queue
import sys
import time

import numpy as np

SESSION_END = float(os.environ["MLODA_SESSION_END"])
ROWS, COLUMNS = 500_000, 12


class CfwManager:
    """What is known of the compute frameworks: here, the names of their features."""

    def __init__(self, features):
        self.features = list(features)

    def index(self, name):
        return self.features.index(name)


class ComputeFramework:
    def __init__(self, seed, manager):
        self.manager = manager
        self.data = np.random.default_rng(seed).standard_normal((COLUMNS, ROWS))

    def calculate(self, source, target):
        values = self.data[self.manager.index(source)]
        result = self.data[self.manager.index(target)]
        np.multiply(values, 0.9, out=result)
        result += 0.1 * float(values.mean())
        return float(result[:1000].std())


def worker(command_queue, result_queue, seed, features):
    framework = ComputeFramework(seed, CfwManager(features))
    result_queue.put(("READY", os.getpid()))
    while time.time() < SESSION_END:
        try:
            command = command_queue.get(block=False)
        except queue.Empty:
            time.sleep(0.01)
            continue
        if command == "STOP":
            break
        result_queue.put(("DONE", framework.calculate(*command)))
    # nobody may read the results any more
    result_queue.cancel_join_thread()


def main():
    context = multiprocessing.get_context("fork")
    features = [f"sensor_{number}" for number in range(COLUMNS)]
    result_queue = context.Queue()
    commands = []
    for seed in range(2):
        command_queue = context.Queue()
        context.Process(target=worker, args=(command_queue, result_queue, seed, features)).start()
        commands.append(command_queue)
    for _ in commands:
        print(sys.argv[1], *result_queue.get(timeout=20), flush=True)
    step, waiting = 0, 0
    while True:
        if step < 40:
            commands[step % 2].put((features[step % COLUMNS], features[(step + 5) % COLUMNS]))
            waiting += 1
        step += 1
        try:
            state, value = result_queue.get(timeout=0.5)
        except queue.Empty:
            continue
        waiting -= 1
        if step % 10 == 0:
            print(f"{sys.argv[1]} {state} {value:.4f}, {waiting} to come", flush=True)


if __name__ == "__main__":
    main()
