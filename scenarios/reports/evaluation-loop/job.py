"""A framework's evaluation loop keeps what validation_step returns; the program has no name for any of it."""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from framework import Module, Trainer

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


class Segmentation(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 16, 3, padding=1)

    def validation_step(self, batch, batch_idx):
        logits = self.layer(batch)
        return {"loss": logits.square().mean(), "logits": logits}


if __name__ == "__main__":
    torch.set_num_threads(1)
    Trainer().validate(Segmentation(), SECONDS)
