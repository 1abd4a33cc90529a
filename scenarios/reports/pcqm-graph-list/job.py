"""Trains a graph network on the gaps of molecules, an epoch over the whole list"""

import time

import torch
from dataset import ATOM_KINDS, BOND_KINDS, MoleculeDataset, collate
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
MOLECULES, BATCH, WIDTH, STEP_S = 7_500, 15, 48, 0.05


class GapNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.atoms = nn.ModuleList([nn.Embedding(kinds, WIDTH) for kinds in ATOM_KINDS])
        self.bonds = nn.ModuleList([nn.Embedding(kinds, WIDTH) for kinds in BOND_KINDS])
        self.layers = nn.ModuleList([nn.Linear(2 * WIDTH + 1, WIDTH) for _ in range(2)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, batch):
        hidden = sum(table(column) for table, column in zip(self.atoms, batch["x"].T))
        bonds = sum(table(column) for table, column in zip(self.bonds, batch["bonds"].T))
        source, target = batch["edges"].T
        lengths = (batch["pos"][source] - batch["pos"][target]).norm(dim=1, keepdim=True)
        for layer in self.layers:
            messages = torch.relu(layer(torch.cat([hidden[source], bonds, torch.exp(-lengths / 3)], 1)))
            hidden = hidden + torch.zeros_like(hidden).index_add(0, target, messages)
        graphs = torch.zeros(len(batch["y"]), WIDTH).index_add(0, batch["graph"], hidden)
        return self.out(graphs)[:, 0]


def main():
    torch.manual_seed(0)
    dataset = MoleculeDataset(MOLECULES)
    print(f"{len(dataset)} molecules in memory", flush=True)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate)
    model = GapNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin, total = time.monotonic(), 0.0
    for step, batch in enumerate(loader, 1):
        loss = nn.functional.l1_loss(model(batch), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        with torch.no_grad():
            while time.monotonic() < begin + step * STEP_S:
                model(batch)  # the moving error of the current weights
        if step % 100 == 0:
            print(f"step {step} of {len(loader)}: loss {total / step:.4f}", flush=True)


if __name__ == "__main__":
    main()
