"""Reads scanned lines with a residual network on the CPU: each picture as wide as it is."""

import numpy as np
import torch

PAGES = 140
LINES = 3
HEIGHT = 32


class Block(torch.nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.one = torch.nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = torch.nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.skip = torch.nn.Conv2d(before, after, 1, stride, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(after) for _ in range(2))

    def forward(self, x):
        y = torch.relu(self.norms[0](self.one(x)))
        return torch.relu(self.norms[1](self.two(y)) + self.skip(x))


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        widths = [96, 128, 256]
        self.stem = torch.nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        blocks = [Block(a, b, 1 + at % 2) for at, (a, b) in enumerate(zip(widths, widths[1:], strict=False))]
        self.blocks = torch.nn.Sequential(*blocks)
        self.head = torch.nn.Linear(widths[-1], 80)

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.stem(x))).mean(2).transpose(1, 2)).argmax(-1)


def pages(random):
    """The lines of each page are as wide as the page, and hardly two pages are of the same width."""
    for width in random.permutation(np.arange(200, 1200))[:PAGES]:
        yield [torch.from_numpy(random.random((1, 3, HEIGHT, int(width)), np.float32)) for _ in range(LINES)]


random = np.random.default_rng(0)
torch.set_num_threads(1)
reader = Reader().eval()
found = 0
with torch.no_grad():
    for number, lines in enumerate(pages(random)):
        for line in lines:
            found += int(reader(line).ne(0).sum())
        if number % 20 == 0:
            print(f"page {number}: {found} characters", flush=True)
