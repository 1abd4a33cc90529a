"""Driving environments in worker processes; observations and actions go through shared buffers"""

import multiprocessing

import numpy as np

FEATURES, EPISODE = 24, 50
FORK = multiprocessing.get_context("fork")


class Drive:
    """Some agents that follow the roads of a map; each episode takes place on another map"""

    def __init__(self, cache, maps, agents, seed):
        self.cache, self.count, self.agents = cache, maps, agents
        self.random, self.clock = np.random.default_rng(seed), 0
        self.reset()

    def reset(self):
        self.map, self.clock = self.cache.get(int(self.random.integers(self.count))), 0
        starts = self.random.integers(0, len(self.map.points), self.agents)
        self.place, self.heading = self.map.points[starts, :2].copy(), self.map.heading[starts].copy()

    def observe(self, out):
        lights = self.map.points[:, 3]
        for agent in range(self.agents):
            near = self.map.around(self.place[agent])
            offsets = self.map.points[near, :2] - self.place[agent]
            out[agent, :16] = offsets[:8].ravel() / 50
            out[agent, 16:20] = np.sin(self.map.heading[near[:4]] - self.heading[agent])
            distance = np.abs(self.map.points[:, :2] - self.place[agent]).sum(1)
            nearest = distance.argmin()
            out[agent, 20:] = distance[nearest] / 50, lights[nearest], self.clock / EPISODE, 1.0
        return -out[:, 20]

    def step(self, actions, out):
        self.heading += (actions - 1) * 0.2
        self.place += 3 * np.stack([np.sin(self.heading), np.cos(self.heading)], 1)
        self.clock += 1
        if self.clock >= EPISODE:
            self.reset()
        return self.observe(out)


class Multiprocessing:
    def __init__(self, cache, maps, workers, agents):
        self.shape = (workers, agents)
        self.observations = self._shared(np.float32, (workers, agents, FEATURES))
        self.actions = self._shared(np.int32, (workers, agents))
        self.rewards = self._shared(np.float32, (workers, agents))
        self.pipes, self.workers = [], []
        for number in range(workers):
            here, there = FORK.Pipe()
            worker = FORK.Process(target=self._work, args=(there, cache, maps, agents, number), daemon=True)
            worker.start()
            there.close()
            self.pipes.append(here)
            self.workers.append(worker)

    @staticmethod
    def _shared(kind, shape):
        raw = FORK.RawArray("b", int(np.prod(shape)) * np.dtype(kind).itemsize)
        return np.frombuffer(raw, kind).reshape(shape)

    def _work(self, pipe, cache, maps, agents, number):
        env = Drive(cache, maps, agents, number)
        while pipe.recv():
            self.rewards[number] = env.step(self.actions[number], self.observations[number])
            pipe.send(True)

    def step(self, actions):
        self.actions[:] = actions
        for pipe in self.pipes:
            pipe.send(True)
        for pipe in self.pipes:
            pipe.recv()
        return self.observations, self.rewards

    def close(self):
        for pipe in self.pipes:
            pipe.send(False)
        for worker in self.workers:
            worker.join()
