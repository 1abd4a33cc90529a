"""Trains a denoising network, and keeps post-hoc EMA checkpoints of it"""

import copy
import pathlib
import tempfile
import time

import torch
from torch import nn

torch.set_num_threads(1)
SECONDS, CHECKPOINT_S, KEPT, SYNTHESIZE_EVERY = 36.0, 2.0, 8, 4
SIDE = 32


class KarrasEMA(nn.Module):
    def __init__(self, model, gamma):
        super().__init__()
        self.online_model = [model]
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
        self.gamma = gamma
        self.register_buffer("step", torch.tensor(0))

    @torch.no_grad()
    def update(self):
        self.step += 1
        beta = (1 - 1 / (self.step.item() + 1)) ** (1 + self.gamma)
        for kept, current in zip(self.ema_model.parameters(), self.online_model[0].parameters()):
            kept.lerp_(current, 1 - beta)


class PostHocEMA:
    def __init__(self, model, folder, gammas=(6.94, 16.97), checkpoint_dtype=torch.float16):
        self.ema_models = [KarrasEMA(model, gamma) for gamma in gammas]
        self.folder, self.checkpoint_dtype = pathlib.Path(folder), checkpoint_dtype
        self.step = 0
        self.saved = []

    def update(self):
        self.step += 1
        for ema_model in self.ema_models:
            ema_model.update()

    def checkpoint(self):
        paths = []
        for number, ema_model in enumerate(self.ema_models):
            path = self.folder / f"{number}.{self.step}.pt"
            package = {
                name: value.to(self.checkpoint_dtype) if value.is_floating_point() else value
                for name, value in ema_model.state_dict().items()
            }
            torch.save(package, path)
            paths.append(path)
        self.saved.append(paths)
        while len(self.saved) > KEPT:
            for path in self.saved.pop(0):
                path.unlink()

    def synthesize(self):
        checkpoints = [torch.load(path) for paths in self.saved for path in paths]
        weights = torch.softmax(torch.linspace(0, 1, len(checkpoints)), 0)
        synthesized = copy.deepcopy(self.ema_models[0])
        state = synthesized.state_dict()
        for name, value in state.items():
            if value.is_floating_point():
                value.zero_()
                for weight, checkpoint in zip(weights, checkpoints):
                    value.add_(checkpoint[name].float(), alpha=weight.item())
        return synthesized


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, 32, 4, 2, 1), nn.SiLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.SiLU(), nn.Flatten(),
        )
        self.middle = nn.Sequential(nn.Linear(64 * 64, 768), nn.SiLU(), nn.Linear(768, 64 * 64), nn.SiLU())
        self.decode = nn.Sequential(
            nn.Unflatten(1, (64, 8, 8)), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.SiLU(),
            nn.ConvTranspose2d(32, 3, 4, 2, 1),
        )

    def forward(self, image):
        hidden = self.encode(image)
        return self.decode(hidden + self.middle(hidden))


def batch_of(generator):
    coarse = torch.rand(16, 3, 4, 4, generator=generator)
    return nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")


def train_step(model, optimizer, generator):
    image = batch_of(generator)
    noise = torch.randn(image.shape, generator=generator)
    loss = nn.functional.mse_loss(model(image + 0.5 * noise), image)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def score(ema, generator):
    image = batch_of(generator)
    return nn.functional.mse_loss(ema.ema_model(image + 0.3), image).item()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    with tempfile.TemporaryDirectory() as folder:
        emas = PostHocEMA(model, folder)
        started = saved = time.monotonic()
        checkpoints = 0
        while time.monotonic() - started < SECONDS:
            loss = train_step(model, optimizer, generator)
            emas.update()
            if time.monotonic() - saved < CHECKPOINT_S:
                continue
            emas.checkpoint()
            checkpoints += 1
            if checkpoints % SYNTHESIZE_EVERY == 0:
                print(f"step {emas.step}: synthesized {score(emas.synthesize(), generator):.4f}", flush=True)
            print(f"step {emas.step}: loss {loss:.4f}", flush=True)
            saved = time.monotonic()


if __name__ == "__main__":
    main()
