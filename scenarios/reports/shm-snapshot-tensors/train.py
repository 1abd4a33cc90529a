"""Trains a network for time series, and saves it every few seconds"""

import tempfile
import time

import torch
from async_ckpt import PersistentAsyncCaller
from torch import nn

WIDTH, SECONDS, FIRST_SAVE_S, SAVE_EVERY_S = 1760, 32.0, 5.5, 4.0


def build():
    layers = [nn.Linear(96, WIDTH)]
    for _ in range(4):
        layers += [nn.GELU(), nn.Linear(WIDTH, WIDTH)]
    return nn.Sequential(*layers, nn.GELU(), nn.Linear(WIDTH, 24))


def series(generator):
    """Sums of waves: the first 96 points, and the 24 that follow"""
    time_points = torch.arange(120) / 24
    phases, speeds = torch.rand(16, 4, 1, generator=generator), torch.rand(16, 4, 1, generator=generator)
    waves = torch.sin(6.28 * (phases + (0.5 + 2 * speeds) * time_points)).sum(1)
    return waves[:, :96], waves[:, 96:]


def state(model, optimizer):
    moments = [value for entry in optimizer.state.values() for value in (entry["exp_avg"], entry["exp_avg_sq"])]
    return [parameter.detach() for parameter in model.parameters()] + moments


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, generator = build(), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    with tempfile.TemporaryDirectory() as folder:
        caller = PersistentAsyncCaller(folder)
        started, step = time.monotonic(), 0
        following = started + FIRST_SAVE_S
        while time.monotonic() < started + SECONDS:
            inputs, targets = series(generator)
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if time.monotonic() > following:
                caller.schedule_async_request(state(model, optimizer))
                following += SAVE_EVERY_S
            if step % 40 == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
        caller.close()


if __name__ == "__main__":
    main()
