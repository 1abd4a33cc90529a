"""Teachers, agents and the worlds in which they talk."""

import queue
import random
import threading

import numpy as np


class LoaderThread(threading.Thread):
    """Carries out requests for episodes, in the order in which they come."""

    def __init__(self):
        super().__init__(daemon=True)
        self.requests = queue.Queue()

    def request(self, receive, load, *arguments):
        self.requests.put((receive, load, arguments))

    def run(self):
        while True:
            receive, load, arguments = self.requests.get()
            receive(load(*arguments))


class FixedDialogTeacher:
    def __init__(self, seed=0, shared=None):
        self.answers = queue.Queue()
        self.choose = random.Random(seed)
        self.waiting = False
        if shared is None:
            rng = np.random.default_rng(seed)
            self.episodes = rng.integers(0, 500, (20_000, 24), np.int16)
        else:
            self.episodes = shared["episodes"]
        self.index = np.argsort(self.episodes.sum(1), kind="stable")
        self.data_loader = LoaderThread()
        self.data_loader.start()

    def share(self):
        return {"class": type(self), "episodes": self.episodes}

    def load(self, number):
        words = self.episodes[number]
        return {"text": words, "labels": words[::-1].copy()}

    def act(self):
        if not self.waiting:
            self.data_loader.request(self.answers.put, self.load, self.choose.randrange(len(self.episodes)))
        episode = self.answers.get()
        self.data_loader.request(self.answers.put, self.load, self.choose.randrange(len(self.episodes)))
        self.waiting = True
        return episode


class DialogWorld:
    def __init__(self, teacher):
        self.teacher = teacher

    def share(self, seed):
        shared = self.teacher.share()
        return DialogWorld(shared["class"](seed, shared))


class BatchWorld:
    def __init__(self, world, size, seed):
        self.worlds = []
        for n in range(size):
            self.worlds.append(world.share(seed * size + n))
            if n % 20 == 0:
                print(f"process {seed}: {n} of {size} worlds", flush=True)

    def parley(self, agent):
        episodes = [world.teacher.act() for world in self.worlds]
        text = np.stack([episode["text"] for episode in episodes])
        labels = np.stack([episode["labels"] for episode in episodes])
        return agent.learn(text, labels)
