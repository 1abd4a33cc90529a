"""Ptychography: an object and a probe are fitted to diffraction patterns, and the panels show how far they are."""

import time

import torch
from plotting import Canvas, plot_with_slider

SECONDS = 22.0
FIELD, PATCH = 224, 128


class FancyPtycho(torch.nn.Module):
    def __init__(self, positions):
        super().__init__()
        self.positions = positions
        self.obj = torch.nn.Parameter(torch.ones(FIELD, FIELD, dtype=torch.complex64))
        window = torch.hann_window(PATCH)
        modes = torch.stack([torch.outer(window, window), torch.outer(window, window.roll(8)) * 0.2])
        self.probe = torch.nn.Parameter(modes.to(torch.complex64))
        self.canvas = Canvas(rows=3)
        self.plot_list = [
            ("Probe amplitude", lambda self: self.probe, torch.abs),
            ("Object amplitude", lambda self: self.obj[None], torch.abs),
            ("Object phase", lambda self: self.obj[None], torch.angle),
        ]

    def forward(self, index):
        patterns = []
        for i in index.tolist():
            top, left = self.positions[i]
            exit_waves = self.probe * self.obj[top : top + PATCH, left : left + PATCH]
            patterns.append(torch.fft.fft2(exit_waves, norm="ortho").abs().square().sum(0))
        return torch.stack(patterns)

    def inspect(self, iteration):
        for axes, (title, function, show) in zip(self.canvas.axes, self.plot_list):
            images = function(self).detach().clone()
            plot_with_slider(self.canvas, axes, images, show, f"{title}, {iteration}")


def simulate(positions):
    y, x = torch.meshgrid(torch.arange(FIELD), torch.arange(FIELD), indexing="ij")
    truth = FancyPtycho(positions)
    with torch.no_grad():
        truth.obj.copy_(torch.polar(torch.ones(FIELD, FIELD), torch.sin(x / 9) * torch.cos(y / 7)))
        return truth(torch.arange(len(positions)))


def main():
    torch.set_num_threads(1)
    positions = [(i, j) for i in range(0, FIELD - PATCH, 16) for j in range(0, FIELD - PATCH, 16)]
    patterns = simulate(positions)
    model = FancyPtycho(positions)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    end, iteration = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        index = torch.randperm(len(positions))[:32]
        loss = (model(index).add(1e-6).sqrt() - patterns[index].add(1e-6).sqrt()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.inspect(iteration)
        iteration += 1
        if iteration % 20 == 0:
            print(f"iteration {iteration} loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    main()
