"""Sentence embeddings of ever new strings; the tokenizer caches what it has split, up to its capacity"""

import time

import numpy as np
import torch

SECONDS = 46.0
BATCH, LENGTH = 200, 12_345
CAPACITY = 10_000
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", np.uint8)


class Tokenizer:
    """Splits a word into pieces of two letters or one; a cache that is full takes no more words"""

    def __init__(self, capacity):
        self.capacity = capacity
        self.cache = {}
        self.pairs = np.random.default_rng(0).integers(0, 30_000, (256, 256), dtype=np.int32)

    def pieces(self, word):
        known = self.cache.get(word)
        if known is not None:
            return known
        letters = np.frombuffer(word.encode(), np.uint8)
        pieces = self.pairs[letters[0::2][: len(letters) // 2], letters[1::2]]
        if len(self.cache) < self.capacity:
            self.cache[word] = pieces
        return pieces

    def __call__(self, texts, longest=160):
        rows = torch.zeros(len(texts), longest, dtype=torch.long)
        for row, text in zip(rows, texts):
            pieces = np.concatenate([self.pieces(word) for word in text.split()])[:longest]
            row[: len(pieces)] = torch.from_numpy(pieces.astype(np.int64))
        return rows


class Encoder(torch.nn.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        self.embedding = torch.nn.Embedding(30_000, 96)
        layer = torch.nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    @torch.inference_mode()
    def encode(self, texts, batch_size=32):
        rows = self.tokenizer(texts)
        return torch.cat([self.layers(self.embedding(part)).mean(1) for part in rows.split(batch_size)])


def main():
    torch.set_num_threads(1)
    generator = np.random.default_rng(3)
    model = Encoder(Tokenizer(CAPACITY)).eval()
    started, iteration = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        letters = LETTERS[generator.integers(0, len(LETTERS), (BATCH, LENGTH))]
        embeddings = model.encode([row.tobytes().decode() for row in letters])
        iteration += 1
        if iteration % 10 == 0:
            print(
                f"iteration {iteration}: {len(model.tokenizer.cache)} words cached, mean {embeddings.mean():.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
