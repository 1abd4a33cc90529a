"""Fits a small network with a loader of one sample a batch, and remembers in which order it saw the samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SpectraSet(Dataset):
    def __init__(self, length=1_000_000):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        spectrum = torch.randn(1, 4000, generator=generator).cumsum(dim=1)
        return {"index": index, "spectrum": spectrum, "slope": spectrum[0, -1] / 4000}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 32, 9, stride=2),
            nn.ReLU(),
            nn.Conv1d(32, 96, 9),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(8),
            nn.Flatten(),
            nn.Linear(768, 1),
        )

    def forward(self, x):
        return self.layers(x)[:, 0]


class History:
    def __init__(self):
        self.index, self.losses = [], []

    def record(self, sample, loss):
        self.index.append(sample["index"])
        self.losses.append(loss.item())


def main():
    torch.set_num_threads(1)
    loader = DataLoader(SpectraSet(), batch_size=1, shuffle=True, num_workers=1)
    net, history = Net(), History()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step, sample in enumerate(loader):
        loss = (net(sample["spectrum"]) - sample["slope"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.record(sample, loss)
        if step % 100 == 0:
            print(f"sample {step}: loss {sum(history.losses[-100:]) / 100:.4f}", flush=True)


if __name__ == "__main__":
    main()
