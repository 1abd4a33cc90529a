"""The exact neighbours of queries in a corpus: files are read ahead, and folded in the order of their numbers"""

import queue
import threading
import urllib.request

import numpy as np
import torch


class Corpus:
    def __init__(self, address, files, width):
        self.address, self.files, self.width = address, files, width

    def read(self, number):
        with urllib.request.urlopen(f"{self.address}/shards/{number}", timeout=120) as answer:
            vectors = np.frombuffer(answer.read(), np.float32).reshape(-1, self.width)
        return torch.from_numpy(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class Readers:
    def __init__(self, corpus, io_workers):
        self.corpus, self.work = corpus, queue.Queue()
        for number in range(corpus.files):
            self.work.put(number)
        # Readers wait here when the consumer is behind
        self.ready = queue.Queue(maxsize=2 * io_workers)
        self.ahead = {}
        for worker in range(io_workers):
            threading.Thread(target=self._loop, name=f"reader-{worker}", daemon=True).start()

    def _loop(self):
        while True:
            try:
                number = self.work.get_nowait()
            except queue.Empty:
                return
            self.ready.put((number, self.corpus.read(number)))

    def next_in_order(self, number):
        while number not in self.ahead:
            found, batch = self.ready.get()
            self.ahead[found] = batch
        return self.ahead.pop(number)


class Neighbours:
    """The best rows so far; ties go to the row with the lower number, so files are folded in ascending order"""

    def __init__(self, queries, count):
        self.queries, self.count, self.seen = queries, count, 0
        self.scores = torch.full((len(queries), count), -torch.inf)
        self.rows = torch.zeros((len(queries), count), dtype=torch.long)

    def fold(self, batch):
        scores, rows = (self.queries @ batch.T).topk(self.count, dim=1)
        merged = torch.cat([self.scores, scores], 1)
        self.scores, order = merged.sort(dim=1, descending=True, stable=True)
        self.scores, order = self.scores[:, : self.count], order[:, : self.count]
        self.rows = torch.cat([self.rows, rows + self.seen], 1).gather(1, order)
        self.seen += len(batch)
