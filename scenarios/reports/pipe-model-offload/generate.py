"""Generates images of several sizes with a pipeline whose models wait on the CPU until they are needed"""

import resource
import time

import torch
from torch import nn

torch.set_num_threads(1)
WIDTH, STEPS, SECONDS = 1024, 4, 36.0
SIZES = [(256, 256), (256, 320), (320, 320), (320, 384), (384, 384), (384, 448)]


class CpuOffload:
    """Moves the weights of a model to the device before its forward, and back when the next model is used"""

    def __init__(self, model, previous=None):
        self.model, self.previous = model, previous

    def pre_forward(self):
        if self.previous is not None:
            self.previous.offload()
        self.move("device")

    def offload(self):
        self.move("cpu")

    def move(self, place):
        if getattr(self.model, "place", "cpu") == place:
            return
        for parameter in self.model.parameters():
            parameter.data = parameter.data.clone()
        self.model.place = place


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden):
        return hidden + self.down(nn.functional.silu(self.up(self.norm(hidden))))


class Denoiser(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.tables = {}

    def rotary(self, size):
        if size not in self.tables:
            tokens = size[0] * size[1] // 256
            grid = torch.arange(tokens, dtype=torch.float32)
            angles = torch.outer(grid, torch.logspace(0, -4, WIDTH // 2))
            table = torch.polar(torch.ones_like(angles), angles)
            distance = (grid[:, None] - grid[None, :]).abs()
            bias = torch.stack([-distance * slope for slope in torch.linspace(0.01, 0.4, 24)])
            self.tables[size] = table, bias
        return self.tables[size]

    def forward(self, hidden, size, time_step):
        table, bias = self.rotary(size)
        weights = torch.softmax(bias[time_step % len(bias)], 1)
        turned = torch.view_as_real(torch.view_as_complex(hidden.view(len(hidden), -1, 2)) * table).flatten(1)
        hidden = weights @ turned
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class Pipeline:
    def __init__(self):
        self.text_encoder = nn.Sequential(nn.Embedding(8000, WIDTH), *[Block() for _ in range(4)])
        self.unet = Denoiser(6)
        self.vae = nn.Sequential(
            nn.ConvTranspose2d(WIDTH // 64, 32, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.SiLU(),
            nn.Conv2d(16, 3, 3, padding=1),
        )

    def enable_model_cpu_offload(self):
        self.hooks, previous = {}, None
        for name in ("text_encoder", "unet", "vae"):
            previous = self.hooks[name] = CpuOffload(getattr(self, name), previous)

    @torch.no_grad()
    def __call__(self, prompt, size):
        self.hooks["text_encoder"].pre_forward()
        condition = self.text_encoder(prompt).mean(0)
        self.hooks["unet"].pre_forward()
        hidden = torch.randn(size[0] * size[1] // 256, WIDTH)
        for step in range(STEPS):
            hidden = hidden - 0.2 * self.unet(hidden + condition, size, step)
        self.hooks["vae"].pre_forward()
        latent = hidden.view(size[0] // 16, size[1] // 16, WIDTH // 64, 8, 8).permute(2, 0, 3, 1, 4)
        image = self.vae(latent.reshape(1, WIDTH // 64, size[0] // 2, size[1] // 2))
        self.hooks["vae"].offload()
        return image


def main():
    torch.manual_seed(0)
    pipeline = Pipeline()
    pipeline.enable_model_cpu_offload()
    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        prompt = torch.randint(8000, (24 + number % 8,))
        image = pipeline(prompt, SIZES[number % len(SIZES)])
        number += 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"After generating {number} - {tuple(image.shape[2:])}, peak memory: {peak:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
