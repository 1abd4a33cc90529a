"""A data provider of processes: each of them draws records, maps them, and puts batches into one queue"""

import json
import multiprocessing as mp
import random

import numpy as np


class Worker(mp.Process):
    def __init__(self, number, path, queue, batch_size):
        super().__init__(name=f"_Worker-{number}", daemon=True)
        self.number, self.path, self.queue, self.batch_size = number, path, queue, batch_size

    def run(self):
        with open(self.path) as file:
            lines = file.read().splitlines()
        order, batch, epoch = list(range(len(lines))), [], 0
        while True:
            random.Random(self.number + 2 * epoch).shuffle(order)
            for place in order:
                batch.append(get_data_for_single(lines[place]))
                if len(batch) == self.batch_size:
                    images, boxes = zip(*batch)
                    self.queue.put((np.stack(images), np.stack(boxes)))
                    batch = []
            epoch += 1


def get_data_for_single(raw_line):
    """An image with the boxes of the record drawn into it, and the mean box"""
    record = json.loads(raw_line)
    rng = np.random.default_rng(record["seed"])
    image = rng.normal(0, 0.1, (48, 48)).astype(np.float32)
    boxes = np.array([box["box"] for box in record["gtboxes"]], dtype=np.float32)
    for x, y, width, height in boxes.astype(int):
        image[y : y + height, x : x + width] += 1
    return image, boxes.mean(0) / 48


class DataProvider:
    def __init__(self, path, workers, batch_size, prefetch=4):
        self.queue = mp.Queue(prefetch)
        self.workers = [Worker(number, path, self.queue, batch_size) for number in range(workers)]

    def start(self):
        for worker in self.workers:
            worker.start()

    def next_batch(self, timeout):
        return self.queue.get(timeout=timeout)
