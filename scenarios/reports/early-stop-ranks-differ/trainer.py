"""A trainer with callbacks, for several ranks"""

import datetime
import time

import torch
import torch.distributed as dist
from torch import nn


class EarlyStoppingCallback:
    def __init__(self, patience):
        self.patience, self.best, self.waited = patience, None, 0

    def on_evaluate(self, metric):
        """Whether the training is to stop."""
        if self.best is None or metric > self.best + 1e-4:
            self.best, self.waited = metric, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class Trainer:
    def __init__(self, model, train, evaluation, callback, epochs, steps, step_seconds):
        self.model, self.train_set, self.evaluation_set = model, train, evaluation
        self.callback, self.epochs, self.steps, self.step_seconds = callback, epochs, steps, step_seconds
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        self.end_group = dist.new_group(timeout=datetime.timedelta(seconds=14))

    def _training_step(self, generator):
        until = time.monotonic() + self.step_seconds
        inputs, labels = self.train_set
        chosen = torch.randint(0, len(inputs), (64,), generator=generator)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(inputs[chosen]), labels[chosen])
        loss.backward()
        # Augmented views of the batch, as many as there is time for.
        with torch.no_grad():
            while time.monotonic() < until:
                self.model(inputs[chosen] + 0.1 * torch.randn(64, inputs.shape[1]))
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        """The mean log likelihood of the sequences that this rank evaluates."""
        inputs, labels = self.evaluation_set
        outputs = [self.model(part) for part in inputs.split(100)]
        return -nn.functional.cross_entropy(torch.cat(outputs), labels).item()

    def train(self):
        generator = torch.Generator().manual_seed(dist.get_rank())
        for epoch in range(self.epochs):
            for _ in range(self.steps):
                self._training_step(generator)
            metric = self.evaluate()
            print(f"rank {dist.get_rank()}, epoch {epoch}: {metric:.4f}", flush=True)
            if self.callback.on_evaluate(metric):
                break
        # All ranks wait here, until the best checkpoint has been written.
        dist.barrier(group=self.end_group)
        return epoch
