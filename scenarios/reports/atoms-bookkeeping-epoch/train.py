"""Trains an interatomic potential on energies and forces: one long epoch over all systems"""

import time

import torch
from systems import ELEMENTS, CollateFn, SystemsDataset, read_system
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
SYSTEMS, BATCH, WIDTH, STEP_S = 7200, 16, 24, 0.06


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(max(ELEMENTS) + 1, WIDTH)
        self.message = nn.Sequential(nn.Linear(2 * WIDTH + 1, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))
        self.own = nn.Linear(WIDTH, 1)

    def forward(self, batch):
        features = self.embedding(batch["types"])
        first, second = batch["pairs"].T
        distances = (batch["positions"][first] - batch["positions"][second]).square().sum(1, keepdim=True)
        near = torch.exp(-distances / 18)
        bonds = self.message(torch.cat([features[first], features[second], near], 1)) * near
        energies = self.own(features).index_add(0, first, bonds)[:, 0]
        return torch.zeros(len(batch["energy"])).index_add(0, batch["system"], energies)


def step(model, optimizer, batch):
    batch["positions"].requires_grad_(True)
    energies = model(batch)
    (gradient,) = torch.autograd.grad(energies.sum(), batch["positions"], create_graph=True)
    loss = nn.functional.smooth_l1_loss(energies, batch["energy"] / 64) + (gradient + batch["forces"]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    systems = [read_system(number) for number in range(SYSTEMS)]
    print(f"{len(systems)} systems read", flush=True)
    model = Potential()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(
        SystemsDataset(systems), batch_size=BATCH, shuffle=True, num_workers=3, collate_fn=CollateFn(), drop_last=True
    )
    begin, total = time.monotonic(), 0.0
    for number, batch in enumerate(loader, 1):
        total += step(model, optimizer, batch)
        with torch.no_grad():
            while time.monotonic() < begin + number * STEP_S:
                model(batch)
        if number % 50 == 0:
            print(f"step {number} of {len(loader)}: loss {total / 50:.4f}", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
