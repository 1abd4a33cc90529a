"""Warms up on some shards that each rank writes for itself, then trains on the stream."""

import os
import sys

import torch
from streams import LocalDataset, StreamingDataset, write_shards
from torch import nn
from torch.utils.data import DataLoader


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


def train(model, optimizer, dataset, name, batches):
    for step, (ids, labels) in enumerate(DataLoader(dataset, 10)):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{sys.argv[1]} {name} step {step} loss {loss.item():.3f}", flush=True)
        if step == batches:
            break


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank = int(os.environ["RANK"])
    folder = os.environ["STREAM_FOLDER"]
    own = os.path.join(folder, f"warmup-{rank}")
    os.mkdir(own)
    write_shards(own, 3, rank)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train(model, optimizer, LocalDataset(own, range(3)), "warm-up", 100 + 25 * rank)
    stream = StreamingDataset(own, list(range(3)))
    train(model, optimizer, stream, "stream", 400)
    stream.close()


if __name__ == "__main__":
    main()
