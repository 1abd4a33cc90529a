"""Word vectors with parts of words: a table of words, and a table of hashed parts, both quantised"""

import random
import struct

import numpy as np

WORDS, BUCKETS, DIM = 130_000, 20_000, 300
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def write_vectors(path):
    generator, letters = np.random.default_rng(0), random.Random(0)
    words = ["".join(letters.choices(LETTERS, k=11)) + f"{number:x}" for number in range(WORDS)]
    with open(path, "wb") as file:
        names = "\n".join(words).encode()
        file.write(struct.pack("<I", len(names)))
        file.write(names)
        for rows in (BUCKETS, WORDS):
            for _ in range(10):
                file.write(generator.integers(-127, 128, (rows // 10, DIM), dtype=np.int8).tobytes())
    return words[::50]


def subwords(word, smallest=3, largest=6):
    marked = f"<{word}>".encode()
    for size in range(smallest, largest + 1):
        for start in range(len(marked) - size + 1):
            value = 2166136261
            for letter in marked[start : start + size]:
                value = (value ^ letter) * 16777619 & 0xFFFFFFFF
            yield value % BUCKETS


class FastTextProcessor:
    def __init__(self, path):
        self.path = path
        self.vectors = None

    def _load_fasttext_model(self):
        print("Loading fasttext model now", flush=True)
        vectors = {}
        with open(self.path, "rb") as file:
            (size,) = struct.unpack("<I", file.read(4))
            words = file.read(size).decode().split("\n")
            buckets = np.frombuffer(file.read(BUCKETS * DIM), dtype=np.int8).reshape(BUCKETS, DIM)
            for word in words:
                row = np.frombuffer(file.read(DIM), dtype=np.int8).astype(np.float32)
                row += buckets[list(subwords(word))].mean(0, dtype=np.float32)
                row /= max(float(np.linalg.norm(row)), 1e-6)
                vectors[word] = row
        self.vectors = vectors

    def __call__(self, words):
        import torch

        if self.vectors is None:
            self._load_fasttext_model()
        return torch.from_numpy(np.stack([self.vectors[word] for word in words]))
