"""Trains a graph network that places waters around proteins"""

import tempfile
import time

import torch
from dataset import EMBEDDING, ProteinWaterDataset, collate, preprocess
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
PROTEINS, CACHED, BATCH, EPOCHS, STEP_S = 280, 150, 4, 6, 0.055


class WaterNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter, self.message = nn.Linear(EMBEDDING, width), nn.Linear(width + 8, width)
        self.leave = nn.Linear(2 * width, 1)

    def forward(self, batch):
        hidden = torch.relu(self.enter(batch["x"]))
        sources, targets = batch["edge_index"]
        messages = torch.relu(self.message(torch.cat([hidden[targets], batch["edge_attr"]], 1)))
        gathered = torch.zeros_like(hidden).index_add(0, sources, messages)
        return self.leave(torch.cat([hidden, gathered], 1))[:, 0]


def main():
    torch.manual_seed(0)
    model = WaterNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        preprocess(folder, PROTEINS)
        dataset = ProteinWaterDataset(folder, PROTEINS, sample_cache_size=CACHED)
        loader = DataLoader(
            dataset, batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate, persistent_workers=True
        )
        for epoch in range(1, EPOCHS + 1):
            begin, total = time.monotonic(), 0.0
            for step, batch in enumerate(loader, 1):
                loss = nn.functional.smooth_l1_loss(model(batch), batch["y"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
                with torch.no_grad():
                    while time.monotonic() < begin + step * STEP_S:
                        model.enter(batch["x"])
            print(f"epoch {epoch}: loss {total / step:.4f}", flush=True)


if __name__ == "__main__":
    main()
