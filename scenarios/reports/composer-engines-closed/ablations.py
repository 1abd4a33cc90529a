"""Trains the same network with several learning rates and widths, one after the other in this process."""

import itertools
import time

import torch
from engine import Callback, Engine, Logger, State
from torch import nn

SECONDS = 1.7
CLASSES = 100


class Console:
    def __init__(self, run_name):
        self.run_name = run_name

    def log_metrics(self, metrics, batch):
        values = " ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        print(f"{self.run_name} batch {batch}: {values}", flush=True)


class SpeedMonitor(Callback):
    def fit_start(self, state, logger):
        self.start = time.monotonic()

    def fit_end(self, state, logger):
        logger.log_metrics({"throughput": state.batches / (time.monotonic() - self.start), "loss": state.loss})


class Trainer:
    def __init__(self, model, train_batches, learning_rate, seconds, run_name):
        optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
        self.state = State(model, [optimizer], seconds)
        self.state.callbacks.append(SpeedMonitor())
        self.logger = Logger(self.state, [Console(run_name)])
        self.engine = Engine(self.state, self.logger)
        self.train_batches = train_batches

    def fit(self):
        state = self.state
        end = time.monotonic() + state.max_duration
        self.engine.run_event("fit_start")
        for inputs, targets in self.train_batches():
            state.batch = inputs, targets
            loss = nn.functional.cross_entropy(state.model(inputs), targets)
            for optimizer in state.optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in state.optimizers:
                optimizer.step()
            state.loss = loss.item()
            state.batches += 1
            self.engine.run_event("batch_end")
            if time.monotonic() > end:
                break
        self.engine.run_event("fit_end")

    def close(self):
        self.engine.close()


def build_model(width):
    return nn.Sequential(
        nn.Linear(512, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, CLASSES)
    )


def batches():
    generator = torch.Generator().manual_seed(17)
    centres = torch.randn(CLASSES, 512, generator=generator)
    while True:
        targets = torch.randint(CLASSES, (64,), generator=generator)
        yield centres[targets] + torch.randn(64, 512, generator=generator), targets


def main():
    torch.set_num_threads(2)
    results = {}
    for width, learning_rate in itertools.product([1280, 1408], [3e-5, 1e-4, 2e-4, 3e-4, 6e-4, 1e-3, 2e-3]):
        torch.manual_seed(17)
        name = f"w{width}-lr{learning_rate:g}"
        trainer = Trainer(build_model(width), batches, learning_rate, SECONDS, name)
        trainer.fit()
        results[name] = trainer.state.loss
        trainer.close()
        del trainer
    best = min(results, key=results.get)
    print(f"best of {len(results)}: {best} with {results[best]:.4f}")


if __name__ == "__main__":
    main()
