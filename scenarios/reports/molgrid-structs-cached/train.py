"""Train a network on grids of pockets: does the ligand bind"""

import os
import tempfile
import time

import torch
from molgrid import TYPES, ExampleProvider, GridMaker, write_types
from torch import nn

torch.set_num_threads(1)
EXAMPLES, BATCH, RUN_S = 400, 8, 30.0


def network():
    return nn.Sequential(
        nn.AvgPool3d(2),
        nn.Conv3d(TYPES, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv3d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 6**3, 2),
    )


def main():
    torch.manual_seed(6)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as root:
        write_types(root, EXAMPLES)
        e, gmaker, model = ExampleProvider(root), GridMaker(), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        begin, first, iteration = time.monotonic(), None, 0
        while True:
            batch = e.next_batch(BATCH)
            passed = time.monotonic() - begin
            if first is None and e.epoch > 1:
                first = passed
            if first is not None and passed > max(RUN_S, 2.6 * first):
                break
            labels = torch.tensor([label for label, _, _ in batch])
            loss = nn.functional.cross_entropy(model(gmaker.forward(batch)), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10)
            optimizer.step()
            iteration += 1
            if iteration % 40 == 0:
                print(f"epoch {e.epoch} iteration {iteration} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
