"""Trains a small model of text and pictures; a checkpoint also has the place in the data"""

import os
import tempfile
import time

import numpy as np
import torch
from dataset import PATCH, WORDS, DynamicBatchDataset
from stateful import StatefulDataLoader
from torch import nn

torch.set_num_threads(1)
WORKERS, BUFFER, BUDGET, STEP_S, SAVE_STEPS, STEPS = 2, 1400, 900, 0.16, 50, 160


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words, self.patches = nn.Embedding(WORDS, width), nn.Linear(PATCH, width)
        self.mix = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, WORDS)

    def forward(self, tokens, patches):
        picture = self.patches(patches.float() / 255).mean(0)
        words = self.words(tokens)
        hidden = self.mix(torch.cat([words[:-2], words[1:-1]], 1)) + picture
        return nn.functional.cross_entropy(self.head(hidden), tokens[2:])


def save(folder, step, model, optimizer, loader):
    path = os.path.join(folder, "latest.pt")
    extra = {"global_step": step, "train_dataloader": loader.state_dict()}
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "extra_state": extra}, path)
    print(f"step {step}: saved {os.path.getsize(path) / 1e6:.0f} MB", flush=True)


def main():
    torch.manual_seed(0)
    loader = StatefulDataLoader(DynamicBatchDataset(BUFFER, BUDGET), num_workers=WORKERS)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for step, batch in enumerate(loader, 1):
            until = time.monotonic() + STEP_S
            total = 0.0
            optimizer.zero_grad()
            for sample in batch:
                tokens = torch.from_numpy(sample["tokens"].astype(np.int64))
                loss = model(tokens, torch.from_numpy(sample["patches"])) / len(batch)
                loss.backward()
                total += loss.item()
            optimizer.step()
            # The rest of the step's time is for the similarity of the words
            with torch.no_grad():
                while time.monotonic() < until:
                    rows = torch.randint(0, WORDS, (400,))
                    torch.pdist(model.words(rows)).mean()
            if step % 15 == 0:
                print(f"step {step}: loss {total:.3f}, {time.monotonic() - begin:.1f} s", flush=True)
            if step % SAVE_STEPS == 0:
                save(folder, step, model, optimizer, loader)
            if step == STEPS:
                break


if __name__ == "__main__":
    main()
