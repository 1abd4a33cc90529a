"""An encoder of text chunks, and the cache of the vectors that it has computed"""

import time
import zlib

import torch

DIMENSION, BUCKETS, CACHE_ENTRIES = 2560, 3000, 8192


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = torch.nn.EmbeddingBag(BUCKETS, 256)
        self.project = torch.nn.Linear(256, DIMENSION)

    @torch.inference_mode()
    def encode(self, texts, seconds):
        until = time.monotonic() + seconds
        rows, starts = [], []
        for text in texts:
            starts.append(len(rows))
            rows += [zlib.crc32(word.encode()) % BUCKETS for word in text.split()]
        words, starts = torch.tensor(rows), torch.tensor(starts)
        while True:
            vectors = torch.nn.functional.normalize(self.project(self.words(words, starts)))
            if time.monotonic() > until:
                return vectors.numpy()


class EmbeddingProvider:
    def __init__(self):
        self.encoder = Encoder().eval()
        self.vectors = {}
        self.hits = self.cleared = 0

    def embed(self, texts, seconds):
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        self.hits += len(texts) - len(missing)
        known = {text: self.vectors[text] for text in texts if text in self.vectors}
        if missing:
            for text, vector in zip(missing, self.encoder.encode(missing, seconds)):
                if len(self.vectors) >= CACHE_ENTRIES:
                    self.vectors.clear()
                    self.cleared += 1
                self.vectors[text] = known[text] = vector.copy()
        return [known[text] for text in texts]
