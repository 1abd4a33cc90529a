"""Converts word vectors from fastText's text format to the archive that the library loads"""

import argparse
import time

import numpy as np


class TokenEmbedding:
    def __init__(self, unknown_token="<unk>"):
        self.unknown_token = unknown_token
        self.idx_to_token, self.token_to_idx, self.idx_to_vec = [unknown_token], {unknown_token: 0}, None

    @classmethod
    def from_file(cls, path):
        embedding, vectors = cls(), []
        with open(path, encoding="utf-8") as file:
            _, dimension = (int(number) for number in next(file).split())
            for line in file:
                token, *elements = line.rstrip("\n").split(" ")
                if token in embedding.token_to_idx:
                    continue
                embedding.token_to_idx[token] = len(embedding.idx_to_token)
                embedding.idx_to_token.append(token)
                vectors.append(np.array([float(element) for element in elements], dtype=np.float32))
        embedding.idx_to_vec = np.vstack([np.zeros(dimension, dtype=np.float32), *vectors])
        return embedding

    def nearest(self, queries, count=10):
        unit = self.idx_to_vec / np.maximum(np.linalg.norm(self.idx_to_vec, axis=1, keepdims=True), 1e-6)
        scores = unit[queries] @ unit.T
        return np.argpartition(-scores, count, axis=1)[:, :count]

    def evaluate(self, seconds):
        """How often a word is among the nearest neighbours of its neighbours"""
        source, until = np.random.default_rng(3), time.monotonic() + seconds
        mutual, asked = 0, 0
        while time.monotonic() < until:
            queries = source.integers(1, len(self.idx_to_token), 64)
            neighbours = self.nearest(queries)
            back = self.nearest(neighbours[:, 1])
            mutual += int((back == queries[:, None]).any(axis=1).sum())
            asked += len(queries)
        return mutual / asked

    def serialize(self, path):
        np.savez(
            path, unknown_token=self.unknown_token, idx_to_token=self.idx_to_token, idx_to_vec=self.idx_to_vec
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("archive")
    parser.add_argument("--evaluate", type=float, default=5.0)
    arguments = parser.parse_args()
    embedding = TokenEmbedding.from_file(arguments.source)
    print(f"{len(embedding.idx_to_token)} tokens", flush=True)
    print(f"mutual neighbours: {embedding.evaluate(arguments.evaluate):.3f}", flush=True)
    embedding.serialize(arguments.archive)
    print(f"saved {arguments.archive}", flush=True)


if __name__ == "__main__":
    main()
