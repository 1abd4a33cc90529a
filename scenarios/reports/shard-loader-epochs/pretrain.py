"""Pretrains a byte-level mLSTM; every epoch has its own order of the shards."""

import time

import torch
from loaders import ShardLoader
from torch import nn

EPOCHS, SECONDS = 14, 26.0


class Model(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.embedding = nn.Embedding(256, 64)
        self.rnn = nn.LSTM(64, width, batch_first=True)
        self.decoder = nn.Linear(width, 256)

    def forward(self, tokens):
        return self.decoder(self.rnn(self.embedding(tokens))[0])


class DataConfig:
    def __init__(self, shards=40):
        self.shards = shards

    def make_loader(self, epoch):
        return ShardLoader(self.shards, seed=epoch)


def train_epoch(model, optimizer, loader, epoch):
    total = 0.0
    for batch in loader:
        tokens = torch.from_numpy(batch).long()
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    model, config = Model(), DataConfig()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    end = time.monotonic() + SECONDS
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer, config.make_loader(epoch), epoch)
        if time.monotonic() > end:
            break


if __name__ == "__main__":
    main()
