"""The trainer: epochs over batches of windows, and a development loss after each of them"""

import copy
import time

import torch
from torch import nn

WINDOW, BATCH, STATES, INPUTS, HIDDEN = 24, 96, 6, 3, 48


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Sequential(
            nn.Linear(STATES + INPUTS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, STATES)
        )

    def forward(self, x, u):
        rollout = []
        for time_step in range(u.shape[1]):
            x = x + 0.1 * self.step(torch.cat([x, u[:, time_step]], -1))
            rollout.append(x)
        return torch.stack(rollout, 1)


class Problem:
    """A model with its objective; the names of its outputs start with the name of the split."""

    def __init__(self, model):
        self.model = model

    def __call__(self, batch, split):
        states, inputs = batch
        rollout = self.model(states[:, 0], inputs)
        return {f"{split}_x": rollout, f"{split}_loss": nn.functional.mse_loss(rollout, states[:, 1:])}


def windows(count, seed):
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(count):
        inputs = torch.randn(BATCH, WINDOW, INPUTS, generator=generator).cumsum(1) * 0.2
        drift = torch.sin(inputs).repeat(1, 1, STATES // INPUTS) * 0.1
        start = torch.randn(BATCH, 1, STATES, generator=generator)
        batches.append((torch.cat([start, start + drift.cumsum(1)], 1), inputs))
    return batches


class Trainer:
    def __init__(self, problem, train, dev, reports, seconds):
        self.problem, self.train_data, self.dev_data = problem, train, dev
        self.reports, self.seconds = reports, seconds
        self.optimizer = torch.optim.Adam(problem.model.parameters(), 3e-3)
        self.log = []
        self.best, self.best_weights = float("inf"), None

    def train(self):
        started, epoch = time.monotonic(), 0
        while time.monotonic() - started < self.seconds:
            losses = []
            for batch in self.train_data:
                output = self.problem(batch, "train")
                self.optimizer.zero_grad()
                output["train_loss"].backward()
                self.optimizer.step()
                losses.append(output["train_loss"].item())
            result = {"epoch": epoch, "mean_train_loss": sum(losses) / len(losses)}
            dev = [self.problem(batch, "dev")["dev_loss"] for batch in self.dev_data]
            result["mean_dev_loss"] = torch.mean(torch.stack(dev))
            if result["mean_dev_loss"] < self.best:
                self.best = float(result["mean_dev_loss"])
                self.best_weights = copy.deepcopy(self.problem.model.state_dict())
            self.log.append(result)
            if epoch % 10 == 0:
                self.reports.put((epoch, result["mean_train_loss"], float(result["mean_dev_loss"])))
            epoch += 1
        return self.best_weights


def fit(building, seconds, reports):
    torch.set_num_threads(1)
    torch.manual_seed(len(building))
    problem = Problem(StateSpace())
    trainer = Trainer(problem, windows(12, 1), windows(1, 2), reports, seconds)
    torch.save(trainer.train(), f"{building}.pth")
