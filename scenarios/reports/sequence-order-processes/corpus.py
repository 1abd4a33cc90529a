"""A corpus of recordings: the list of its sequences, and the features of each"""

import gzip
import json
import random

import numpy as np

FEATURES, LABELS = 40, 64


def write_corpus(path, sequences, seed):
    numbers = random.Random(seed)
    words = ["".join(numbers.choices("etaoinshrdlu", k=numbers.randint(2, 7))) for _ in range(3000)]
    with gzip.open(path, "wt", compresslevel=1) as file:
        for number in range(sequences):
            entry = {
                "seq_name": f"corpus/rec-{number // 40:05}/{number % 40:03}",
                "file": f"audio/{number // 40:05}/{number % 40:03}.ogg",
                "duration": round(numbers.uniform(0.8, 6.0), 3),
                "text": " ".join(numbers.choices(words, k=numbers.randint(4, 14))),
                "targets": numbers.choices(range(LABELS), k=3),
            }
            file.write(json.dumps(entry) + "\n")


class OggZipDataset:
    def __init__(self, path, segment_filter=0.0):
        with gzip.open(path, "rt") as file:
            self.entries = [entry for line in file if (entry := json.loads(line))["duration"] >= segment_filter]
        self.order = []

    def get_seq_order_for_epoch(self, epoch, partition):
        order = list(range(len(self.entries)))
        random.Random(epoch).shuffle(order)
        part = order[epoch % partition :: partition]
        part.sort(key=lambda index: self.entries[index]["duration"] // 1.0)
        return part

    def init_seq_order(self, order):
        self.order = order

    def __len__(self):
        return len(self.order)

    def get_seq(self, number):
        entry = self.entries[self.order[number]]
        generator = np.random.default_rng(self.order[number])
        frames = int(entry["duration"] * 20)
        features = generator.standard_normal((frames, FEATURES), dtype=np.float32)
        features[:, : len(entry["text"]) % FEATURES] += 0.5
        return features, np.asarray(entry["targets"], np.int64), entry["seq_name"]
