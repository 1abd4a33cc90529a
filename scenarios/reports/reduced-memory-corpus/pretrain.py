"""Pretrains on the pregenerated examples. The arrays of an epoch are on disk, to reduce memory."""

import hashlib
import json
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, LENGTH, NGRAMS = 8192, 384, 128


class PregeneratedDataset(Dataset):
    def __init__(self, data, epoch, working, owner):
        path = os.path.join(data, f"epoch_{epoch}.json")
        with open(path, "rb") as file:
            self.count = sum(1 for _ in file)
        folder = os.path.join(working, f"epoch-{epoch}-{owner}")
        os.mkdir(folder)
        self.input_ids = self.array(folder, "input_ids", np.int32, LENGTH)
        self.input_masks = self.array(folder, "input_masks", bool, LENGTH)
        self.segments = self.array(folder, "segment_ids", bool, LENGTH)
        self.labels = self.array(folder, "lm_label_ids", np.int32, LENGTH)
        self.ngrams = self.array(folder, "ngram_positions", bool, NGRAMS * 8)
        with open(path) as file:
            for row, line in enumerate(file):
                self.convert(row, json.loads(line))
                if row % 2000 == 0:
                    print(f"epoch {epoch}: {row} of {self.count} examples", flush=True)

    def array(self, folder, name, kind, width):
        return np.memmap(os.path.join(folder, f"{name}.memmap"), kind, "w+", shape=(self.count, width))

    @staticmethod
    def piece(token):
        return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=4).digest(), "little") % VOCABULARY

    def convert(self, row, example):
        ids = [self.piece(token) for token in example["tokens"]]
        for place, label in zip(example["masked"], example["labels"]):
            self.labels[row, place] = self.piece(label)
            ids[place] = 3
        self.input_ids[row, : len(ids)] = ids
        self.input_ids[row, len(ids) :] = 1
        self.labels[row, len(ids) :] = -1
        self.input_masks[row, : len(ids)] = 1
        self.segments[row, len(ids) // 2 : len(ids)] = 1
        for start, end in example["ngrams"]:
            self.ngrams[row, start * 8 : end * 8] = 1

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        return torch.from_numpy(self.input_ids[row, :64].astype(np.int64)), torch.from_numpy(
            self.labels[row, :64].astype(np.int64)
        )


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        return self.head(self.mix(self.embedding(ids))[0][:, ::8])


def train(model, optimizer, dataset, epoch):
    for step, (ids, labels) in enumerate(DataLoader(dataset, 32, shuffle=True)):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels[:, ::8].clamp(min=0).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)


def main():
    data, working, owner = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        dataset = PregeneratedDataset(data, epoch, working, owner)
        train(model, optimizer, dataset, epoch)


if __name__ == "__main__":
    main()
