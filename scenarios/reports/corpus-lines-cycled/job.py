"""Masked language modelling on a text file that is read again and again by the workers of a loader."""

import itertools
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

LINES, LENGTH, VOCABULARY = 250_000, 256, 8000
SECONDS = 60.0


def write_corpus(path):
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + c) for c in rng.integers(0, 26, rng.integers(2, 9))) for _ in range(5000)]
    chosen = rng.integers(0, len(words), (500, 48))
    block = [" ".join(words[w] for w in row) for row in chosen]
    with open(path, "w") as file:
        for number in range(LINES // len(block)):
            file.write("\n".join(f"{number} {line}" for line in block) + "\n")


class DemoTrainDataset(IterableDataset):
    def __init__(self, data_file):
        self.data_file = data_file

    def tokenize(self, line):
        ids = [1]
        for word in line.split():
            for start in range(0, len(word), 3):
                ids.append(hash(word[start : start + 3]) % VOCABULARY)
        ids = ids[: LENGTH - 1] + [2]
        attention = [1] * len(ids) + [0] * (LENGTH - len(ids))
        return {"input_ids": ids + [0] * (LENGTH - len(ids)), "attention_mask": attention}

    def parse_file(self):
        worker = get_worker_info()
        with open(self.data_file, encoding="utf-8", buffering=10_000) as file:
            for number, line in enumerate(file):
                if number % worker.num_workers == worker.id:
                    yield self.tokenize(line.strip())

    def __iter__(self):
        return itertools.cycle(self.parse_file())


def collate(samples):
    return {name: torch.tensor([sample[name] for sample in samples]) for name in samples[0]}


class MaskedLM(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Conv1d(width, width, 5, padding=2)
        self.head = nn.Linear(width, 256)

    def forward(self, input_ids, attention_mask):
        hidden = self.embedding(input_ids) * attention_mask[..., None]
        hidden = torch.relu(self.mix(hidden.transpose(1, 2))).transpose(1, 2)
        return self.head(hidden.mean(dim=1))


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.txt")
        write_corpus(path)
        loader = DataLoader(DemoTrainDataset(path), batch_size=32, num_workers=2, collate_fn=collate)
        model = MaskedLM()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        end = time.monotonic() + SECONDS
        for step, batch in enumerate(loader):
            output = model(*(part[:, :64] for part in batch.values()))
            loss = nn.functional.cross_entropy(output, batch["input_ids"][:, 5] % 256)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if time.monotonic() > end:
                break


if __name__ == "__main__":
    main()
