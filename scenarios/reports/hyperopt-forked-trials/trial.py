"""One trial of the scan: a network for each fold of the experiments, trained with the trial's hyperparameters"""

import time

import torch
from torch import nn

FOLDS, FOLD_S = 4, 0.55


class Distribution(nn.Module):
    def __init__(self, grid, width, layers):
        super().__init__()
        self.register_buffer("x", torch.logspace(-4, 0, grid)[:, None])
        sizes = [2] + [width] * layers
        self.hidden = nn.ModuleList(nn.Linear(one, other) for one, other in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 8)

    def forward(self):
        value = torch.cat([self.x, self.x.log()], 1)
        for layer in self.hidden:
            value = torch.tanh(layer(value))
        return self.out(value).flatten()


def run(tables, grid, choice):
    """The mean loss of the held out experiments"""
    torch.manual_seed(choice["number"])
    kernels = [torch.from_numpy(table["kernel"]) for table in tables]
    central = [torch.from_numpy(table["central"]) for table in tables]
    models, losses = [], []
    for fold in range(FOLDS):
        end = time.monotonic() + FOLD_S
        model = Distribution(grid, choice["width"], choice["layers"])
        optimizer = torch.optim.Adam(model.parameters(), lr=choice["rate"])
        models.append((model, optimizer))
        inside = [number for number in range(len(tables)) if number % FOLDS != fold]
        steps = 0
        while time.monotonic() < end or steps < 2:
            optimizer.zero_grad()
            values = model()
            loss = sum((kernels[number] @ values - central[number]).square().mean() for number in inside)
            loss.backward()
            optimizer.step()
            steps += 1
    # The penalties need the networks of all folds together
    with torch.no_grad():
        values = torch.stack([model() for model, _ in models])
        for fold in range(FOLDS):
            outside = [number for number in range(len(tables)) if number % FOLDS == fold]
            losses += [(kernels[number] @ values[fold] - central[number]).square().mean() for number in outside]
        return float(torch.stack(losses).mean() + 0.1 * values.std(0).mean())
