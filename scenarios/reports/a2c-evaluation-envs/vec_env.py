"""Environments in processes of their own, in the way of baselines"""

import multiprocessing

import numpy as np

CONTEXT = multiprocessing.get_context("fork")


class Emulator:
    """A game with its screen, and the saved states of its machine"""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.states = self.random.integers(0, 255, (24, 210, 160, 6), dtype=np.uint8)
        self.steps = 0

    def reset(self):
        self.steps = 0
        return self._screen()

    def _screen(self):
        state = self.states[self.steps % len(self.states)]
        return state[::5, ::4, :3].mean(2, dtype=np.float32) / 255

    def step(self, action):
        self.steps += 1
        self.states[self.steps % len(self.states), action::7] += np.uint8(1)
        return self._screen(), float(self.random.random() < 0.1), self.steps >= 200


def worker(remote, parent_remote, seed):
    parent_remote.close()
    env = Emulator(seed)
    while True:
        try:
            command, data = remote.recv()
        except EOFError:
            break
        if command == "step":
            obs, reward, done = env.step(data)
            if done:
                obs = env.reset()
            remote.send((obs, reward, done))
        elif command == "reset":
            remote.send(env.reset())
        elif command == "close":
            remote.close()
            break


class SubprocVecEnv:
    def __init__(self, seeds):
        self.remotes, self.work_remotes = zip(*[CONTEXT.Pipe() for _ in seeds])
        self.processes = [
            CONTEXT.Process(target=worker, args=(work_remote, remote, seed), daemon=True)
            for work_remote, remote, seed in zip(self.work_remotes, self.remotes, seeds)
        ]
        for process in self.processes:
            process.start()
        for remote in self.work_remotes:
            remote.close()

    def reset(self):
        for remote in self.remotes:
            remote.send(("reset", None))
        return np.stack([remote.recv() for remote in self.remotes])

    def step(self, actions):
        for remote, action in zip(self.remotes, actions):
            remote.send(("step", int(action)))
        obs, rewards, dones = zip(*[remote.recv() for remote in self.remotes])
        return np.stack(obs), np.array(rewards, dtype=np.float32), np.array(dones)

    def close(self):
        for remote in self.remotes:
            remote.send(("close", None))
        for process in self.processes:
            process.join()
