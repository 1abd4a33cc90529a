"""Searches for the widths and the dropout of a classifier of digits"""

import time

import torch
from torch import nn

from hyper import STATUS_OK, Choice, Trials, Uniform, fmin

torch.set_num_threads(1)
TRIALS, FIT_S = 42, 0.72


def data():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (6000,), generator=generator)
    prototypes = torch.rand(10, 784, generator=generator)
    pixels = 0.5 * prototypes[labels] + 0.5 * torch.rand(6000, 784, generator=generator)
    return pixels[:5000], labels[:5000], pixels[5000:], labels[5000:]


def optimise():
    x_train, y_train, x_test, y_test = data()
    number = 0

    def create_model(first, second, dropout, rate):
        nonlocal number
        number += 1
        model = nn.Sequential(
            nn.Linear(784, first), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(first, second), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(second, 10),
        )
        optimizer = torch.optim.RMSprop(model.parameters(), lr=rate)
        until = time.monotonic() + FIT_S
        while time.monotonic() < until:
            chosen = torch.randint(0, len(x_train), (64,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x_train[chosen]), y_train[chosen]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"trial {number}: test accuracy {accuracy:.3f}", flush=True)
        return {"loss": -accuracy, "status": STATUS_OK, "model": model}

    space = [
        Choice("first", [640, 768, 896, 1024]),
        Choice("second", [512, 640, 768]),
        Uniform("dropout", 0.0, 0.5),
        Choice("rate", [1e-4, 3e-4, 1e-3]),
    ]
    trials = Trials()
    best_run = fmin(create_model, space, TRIALS, trials)
    best_model = trials.best_trial["result"]["model"]
    return best_run, best_model, (x_test, y_test)


def main():
    torch.manual_seed(0)
    best_run, best_model, (x_test, y_test) = optimise()
    with torch.no_grad():
        accuracy = (best_model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"best: {best_run}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
