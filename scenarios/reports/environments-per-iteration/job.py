"""Training of a policy: each iteration makes its environments in processes of their own, and leaves the old ones be."""

import multiprocessing
import random
from multiprocessing import Pipe, Process


def environment(pipe, seed):
    memory = bytearray(random.Random(seed).randbytes(12 << 20))
    while True:
        action = pipe.recv()
        if action is None:
            return
        memory[action] = (memory[action] + 1) % 256
        pipe.send(sum(memory[:200_000]))


class Vector:
    def __init__(self, number, seed):
        self.pipes, self.processes = [], []
        for n in range(number):
            mine, theirs = Pipe()
            process = Process(target=environment, args=(theirs, seed * 100 + n), daemon=True)
            process.start()
            self.pipes.append(mine)
            self.processes.append(process)

    def step(self, action):
        for pipe in self.pipes:
            pipe.send(action)
        return [pipe.recv() for pipe in self.pipes]


def main():
    multiprocessing.set_start_method("fork")
    rewards = []
    for iteration in range(40):
        vector = Vector(3, iteration)
        rewards.append(sum(sum(vector.step(action)) for action in range(120)))
        print(iteration, rewards[-1], flush=True)


main()
