"""One segment of the training of an atmosphere emulator; restores the newest checkpoint, if there is one"""

import argparse
import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
RANK, WORLD_SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CHANNELS, GRID = 24, (48, 96)


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(CHANNELS, 64, 1)
        self.blocks = nn.ModuleList([nn.Conv2d(64, 64, 3, padding=1) for _ in range(3)])
        self.decoder = nn.Conv2d(64, CHANNELS, 1)

    def forward(self, state):
        hidden = self.encoder(state)
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))
        return self.decoder(hidden)


class Distributed(nn.Module):
    """The model of a rank; the gradients are averaged elsewhere"""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, state):
        return self.module(state)


class Trainer:
    def __init__(self, output):
        self.path = os.path.join(output, "training_checkpoints", "ckpt.tar")
        torch.manual_seed(RANK)
        self.model = Emulator()
        if WORLD_SIZE > 1:
            self.model = Distributed(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.epoch = 0
        self.means, self.deviations = self.normalization()
        if os.path.exists(self.path):
            self.restore_checkpoint()

    def normalization(self, seconds=5.0):
        """Statistics of the reference simulation, over as many of its steps as the time allows"""
        until, steps = time.monotonic() + seconds, 0
        total, squares = torch.zeros(CHANNELS), torch.zeros(CHANNELS)
        while time.monotonic() < until:
            state = torch.randn(CHANNELS, *GRID)
            total += state.mean((1, 2))
            squares += state.pow(2).mean((1, 2))
            steps += 1
        mean = total / steps
        return mean.view(-1, 1, 1), (squares / steps - mean.pow(2)).sqrt().view(-1, 1, 1)

    def restore_checkpoint(self):
        checkpoint = torch.load(self.path, map_location="cpu")
        self.model.load_state_dict(checkpoint["model_state"])
        self.optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
        self.epoch = checkpoint["epoch"]

    def save_checkpoint(self):
        state = {"epoch": self.epoch, "model_state": self.model.state_dict()}
        state["optimizer_state_dict"] = self.optimizer.state_dict()
        torch.save(state, self.path + f".{RANK}")
        os.replace(self.path + f".{RANK}", self.path)

    def train(self, seconds):
        until, loss = time.monotonic() + seconds, torch.zeros(())
        while time.monotonic() < until:
            for _ in range(10):
                state = (torch.randn(2, CHANNELS, *GRID) - self.means) / self.deviations
                loss = (self.model(state) - state.roll(1, 3)).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.epoch += 1
            if RANK == 0:
                self.save_checkpoint()
        print(f"rank {RANK}: epoch {self.epoch}, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--seconds", type=float, default=9)
    arguments = parser.parse_args()
    Trainer(arguments.output).train(arguments.seconds)
