"""Trains an emulator of the atmosphere on short windows, and rolls it out over a long period after the epoch"""

import logging
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
NAMES = ["PRESsfc", "TMP2m", "UGRD10m", "VGRD10m", "h500", "air_temperature_7", "specific_total_water_7", "PRATEsfc"]
LAT, LON, TIMES = 90, 180, 1460
TRAIN_S, FORWARD_STEPS_IN_MEMORY, INITIAL_CONDITIONS = 20.0, 40, 4
STEP_S = 0.1


class XarrayData:
    """The fields of a run, which travel with the wind"""

    def __init__(self):
        source = np.random.default_rng(0)
        coarse = source.standard_normal((len(NAMES), LAT // 10, LON // 10)).astype(np.float32)
        self.fields = np.repeat(np.repeat(coarse, 10, 1), 10, 2)

    def load(self, name, start, steps):
        field = self.fields[NAMES.index(name)]
        return np.stack([np.roll(field, time, 1) for time in range(start, start + steps)])


class WindowDataset(Dataset):
    def __init__(self, data, starts, steps):
        self.data, self.starts, self.steps = data, starts, steps

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = self.starts[index]
        return {name: torch.from_numpy(self.data.load(name, start, self.steps)) for name in NAMES}


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        count = len(NAMES)
        self.body = nn.Sequential(
            nn.Conv2d(count, 32, 5, padding=2), nn.GELU(), nn.Conv2d(32, 32, 3, padding=1), nn.GELU(),
            nn.Conv2d(32, count, 3, padding=1),
        )

    def forward(self, state):
        return state + self.body(state)


def at(batch, step):
    return torch.stack([batch[name][:, step] for name in NAMES], 1)


def train_one_epoch(model, data):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    starts = [(7 * index) % (TIMES - 3) for index in range(100_000)]
    loader = DataLoader(WindowDataset(data, starts, 3), batch_size=2, num_workers=1, multiprocessing_context="fork")
    started, total, steps = time.monotonic(), 0.0, 0
    for batch in loader:
        state = at(batch, 0)
        loss = torch.zeros(())
        for step in (1, 2):
            state = model(state)
            loss = loss + nn.functional.mse_loss(state, at(batch, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
        if time.monotonic() - started > TRAIN_S:
            break
    return total / steps


@torch.no_grad()
def run_inference(model, data):
    starts = [
        window * FORWARD_STEPS_IN_MEMORY + 300 * member
        for window in range(12)
        for member in range(INITIAL_CONDITIONS)
    ]
    dataset = WindowDataset(data, [start % (TIMES - 50) for start in starts], FORWARD_STEPS_IN_MEMORY + 1)
    loader = DataLoader(dataset, batch_size=INITIAL_CONDITIONS, num_workers=1, multiprocessing_context="fork")
    state, errors = None, []
    for number, window in enumerate(loader):
        first = number * FORWARD_STEPS_IN_MEMORY
        last = first + FORWARD_STEPS_IN_MEMORY
        logging.info(f"Inference: starting window spanning {first} to {last} steps")
        if state is None:
            state = at(window, 0)
        for step in range(1, FORWARD_STEPS_IN_MEMORY + 1):
            until = time.monotonic() + STEP_S
            state = model(state).clamp(-5, 5)
            target = at(window, step)
            spectrum = torch.zeros(())
            while time.monotonic() < until:
                spectrum = torch.fft.rfft(state - target).abs().mean()
            errors.append((spectrum.item(), nn.functional.mse_loss(state, target).item()))
    return errors


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    torch.manual_seed(0)
    data, model = XarrayData(), Emulator()
    logging.info(f"epoch 1: train loss {train_one_epoch(model, data):.4f}")
    logging.info("starting inline inference")
    errors = run_inference(model, data)
    logging.info(f"inference error {errors[-1][1]:.4f}")


if __name__ == "__main__":
    main()
