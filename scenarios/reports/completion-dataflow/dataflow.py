"""Flows of data points: read, repeated, shuffled in a buffer, batched and prefetched by another process"""

import collections
import lzma
import multiprocessing
import random

import numpy as np

PARTIAL, COMPLETE = 2048, 16_384


class CompressedData:
    """Pairs of a partial and a complete cloud; a file for each, the clouds compressed"""

    def __init__(self, paths):
        self.paths = paths

    def get_data(self):
        for path in self.paths:
            with open(path, "rb") as file:
                points = np.frombuffer(lzma.decompress(file.read()), np.float32).reshape(-1, 3)
            yield points[:PARTIAL].copy(), points[PARTIAL:].copy()


class RepeatedData:
    def __init__(self, flow):
        self.flow = flow

    def get_data(self):
        while True:
            yield from self.flow.get_data()


class LocallyShuffleData:
    def __init__(self, flow, buffer_size, shuffle_interval=64):
        self.flow, self.shuffle_interval = flow, shuffle_interval
        self.q = collections.deque(maxlen=buffer_size)
        self.rng = random.Random(0)

    def get_data(self):
        points = self.flow.get_data()
        while len(self.q) < self.q.maxlen:
            self.q.append(next(points))
        taken = 0
        while True:
            if taken % self.shuffle_interval == 0:
                self.rng.shuffle(self.q)
            taken += 1
            yield self.q.popleft()
            self.q.append(next(points))


class BatchData:
    def __init__(self, flow, batch_size):
        self.flow, self.batch_size = flow, batch_size

    def get_data(self):
        points = self.flow.get_data()
        while True:
            batch = [next(points) for _ in range(self.batch_size)]
            yield tuple(np.stack(part) for part in zip(*batch))


class PrefetchData:
    def __init__(self, flow, nr_prefetch):
        context = multiprocessing.get_context("fork")
        self.queue = context.Queue(nr_prefetch)
        self.process = context.Process(target=self.work, args=(flow, self.queue), daemon=True)
        self.process.start()

    @staticmethod
    def work(flow, queue):
        for batch in flow.get_data():
            queue.put(batch)

    def get_data(self):
        while True:
            yield self.queue.get()

    def stop(self):
        self.process.terminate()
        self.process.join()
