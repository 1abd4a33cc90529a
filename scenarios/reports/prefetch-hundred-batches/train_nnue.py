"""Trains an efficiently updatable network on a stream of positions"""

import time

import torch
from torch import nn

from nnue_dataset import FEATURES, FixedNumBatchesDataset, SparseBatchProvider

torch.set_num_threads(1)
SECONDS, STEP_S, BATCH, EPOCH, WIDTH = 38.0, 0.18, 6000, 40, 64


class NNUE(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.EmbeddingBag(FEATURES, WIDTH, mode="sum")
        self.layers = nn.Sequential(nn.Linear(2 * WIDTH, 16), nn.Hardtanh(0.0, 1.0), nn.Linear(16, 1))

    def forward(self, white, black):
        accumulated = torch.cat([self.input(white), self.input(black)], 1)
        return torch.sigmoid(self.layers(accumulated.clamp(0.0, 1.0)))


def main():
    torch.manual_seed(0)
    model = NNUE()
    nn.init.normal_(model.input.weight, std=0.05)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    dataset = FixedNumBatchesDataset(SparseBatchProvider(BATCH), EPOCH)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, shuffle=False)
    started, epoch = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        total = 0.0
        for white, black, score in loader:
            until = time.monotonic() + STEP_S
            while True:
                loss = (model(white, black) - score).abs().pow(2.5).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            total += loss.item()
        epoch += 1
        print(f"epoch {epoch}: loss {total / EPOCH:.5f}", flush=True)
    dataset.close()


if __name__ == "__main__":
    main()
