"""Trains an emulator of the atmosphere; six inference runs from different initial times follow every epoch"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from distributed import Distributed

SECONDS, CHANNELS, LATITUDES, LONGITUDES = 22.0, 8, 60, 120
RUNS, WORKERS, FORWARD_STEPS, EPOCH_STEPS = 6, 4, 10, 150


def field(seed):
    noise = np.random.default_rng(seed).standard_normal((CHANNELS, LATITUDES, LONGITUDES), dtype=np.float32)
    spectrum = np.fft.rfft2(noise)
    spectrum[:, 10:-10] = 0
    return np.fft.irfft2(spectrum, s=(LATITUDES, LONGITUDES)).astype(np.float32)


class InferenceDataset(Dataset):
    """The forcing of one inference run, step by step"""

    def __init__(self, initial_time):
        self.initial_time = initial_time

    def __len__(self):
        return FORWARD_STEPS

    def __getitem__(self, index):
        distributed = Distributed.get_instance()
        member = distributed.local(distributed.world_size)[0]
        return torch.from_numpy(field((self.initial_time, member, index)))


def worker_init(worker_id):
    torch.set_num_threads(1)
    Distributed.get_instance()


def inference_loader(initial_time):
    return DataLoader(
        InferenceDataset(initial_time),
        batch_size=1,
        num_workers=WORKERS,
        persistent_workers=True,
        multiprocessing_context="forkserver",
        worker_init_fn=worker_init,
    )


class Emulator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Conv2d(2 * CHANNELS, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(6))
        self.decoder = nn.Conv2d(width, CHANNELS, 3, padding=1)

    def forward(self, state, forcing):
        hidden = self.encoder(torch.cat([state, forcing], dim=1))
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))
        return state + self.decoder(hidden)


@torch.no_grad()
def inline_inference(model, forcings, device):
    state, errors = torch.zeros(1, CHANNELS, LATITUDES, LONGITUDES, device=device), []
    for forcing in forcings:
        forcing = forcing.to(device)
        state = model(state, forcing).clamp(-5, 5)
        errors.append((state - forcing).square().mean())
    return torch.stack(errors).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    distributed = Distributed.get_instance()
    device = distributed.device
    model = Emulator().to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    loaders = [inference_loader(initial_time) for initial_time in range(RUNS)]
    samples = [torch.from_numpy(field(seed)) for seed in range(1000, 1032)]
    end, epoch = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for step in range(EPOCH_STEPS):
            chosen = np.random.default_rng((epoch, step)).integers(0, len(samples), 9)
            batch = torch.stack([samples[index] for index in chosen]).to(device)
            loss = (model(batch[:-1], batch[1:]) - batch[1:]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        runs = [iter(loader) for loader in loaders]
        errors = distributed.reduce_mean([inline_inference(model, forcings, device) for forcings in runs])
        epoch += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}, errors {[round(error, 3) for error in errors]}", flush=True)


if __name__ == "__main__":
    main()
