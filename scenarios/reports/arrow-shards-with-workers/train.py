"""Trains a language model on texts that are too many for memory."""

import os
import tempfile
import time

import torch
from tables import TextDataset, write_table
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS = 30.0
LENGTH = 96


class Tokenized(Dataset):
    """A text's crop that depends on all of it, as that of a tokenizer does."""

    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        text = self.texts.text(i)
        words = text.split(b" ")
        joined = b" ".join(words[len(words) // 3 :])
        ids = torch.frombuffer(bytearray(joined[: LENGTH + 1].ljust(LENGTH + 1)), dtype=torch.uint8).long()
        return ids[:-1], ids[1:]


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embedding = nn.Embedding(128, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 128)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"text-{n:05d}.table") for n in range(3)]
        for seed, path in enumerate(paths):
            write_table(path, batches=20, rows=300, seed=seed)
        data = Tokenized(TextDataset(paths))
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        end, step = time.monotonic() + SECONDS, 0
        loader = DataLoader(data, 24, shuffle=False, num_workers=2, persistent_workers=True)
        while time.monotonic() < end:
            for ids, labels in loader:
                loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step % 100 == 0:
                    print(f"step {step} loss {loss.item():.3f}", flush=True)
                if time.monotonic() > end:
                    break


if __name__ == "__main__":
    main()
