"""Environments in processes of their own; an environment that is over is reset in the next step"""

import multiprocessing

import numpy as np


def work(number, make, pipe, shared, shape):
    env = make(number)
    frames = np.frombuffer(shared, np.float32).reshape(shape)
    over = False
    while True:
        command, action = pipe.recv()
        if command == "close":
            break
        if command == "reset":
            frames[number] = env.reset()
            pipe.send(True)
        else:
            if over:
                frames[number], reward, terminated, truncated = env.reset(), 0, False, False
            else:
                frames[number], reward, terminated, truncated = env.step(action)
            over = terminated or truncated
            pipe.send((reward, terminated, truncated))


class AsyncVectorEnv:
    def __init__(self, make, count, shape):
        context = multiprocessing.get_context("fork")
        self.shape = (count, *shape)
        shared = context.RawArray("f", int(np.prod(self.shape)))
        self.frames = np.frombuffer(shared, np.float32).reshape(self.shape)
        self.pipes, self.processes = [], []
        for number in range(count):
            here, there = context.Pipe()
            process = context.Process(target=work, args=(number, make, there, shared, self.shape), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def reset(self):
        for pipe in self.pipes:
            pipe.send(("reset", None))
        for pipe in self.pipes:
            pipe.recv()
        return self.frames.copy()

    def step(self, actions):
        for pipe, action in zip(self.pipes, actions):
            pipe.send(("step", action))
        rewards, terminations, truncations = zip(*(pipe.recv() for pipe in self.pipes))
        return (
            self.frames.copy(),
            np.array(rewards, dtype=np.float64),
            np.array(terminations, dtype=np.bool_),
            np.array(truncations, dtype=np.bool_),
        )

    def close(self):
        for pipe in self.pipes:
            pipe.send(("close", None))
        for process in self.processes:
            process.join()
