"""Posterior sampling by decoupled annealing: a short diffusion run, then Langevin dynamics towards the measurement."""

import time

import torch
from torch import nn


class Denoiser(nn.Module):
    """A small network of the noise, at a quarter of the resolution."""

    def __init__(self, channels=24):
        super().__init__()
        self.encode = nn.Conv2d(4, channels, 4, stride=4)
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1)
        )
        self.decode = nn.ConvTranspose2d(channels, 3, 4, stride=4)

    def forward(self, x, sigma):
        level = torch.full_like(x[:, :1], float(sigma)).log() / 4
        hidden = self.encode(torch.cat([x / (1 + sigma**2) ** 0.5, level], dim=1))
        return x / (1 + sigma**2) + 0.05 * self.decode(torch.nn.functional.silu(self.body(hidden)))


class Blur:
    """The forward operator: a box blur and a subsampling; its adjoint gives the gradient of the likelihood."""

    def __init__(self, factor=4):
        self.factor = factor

    def __call__(self, x):
        return nn.functional.avg_pool2d(x, self.factor)

    @torch.no_grad()
    def gradient(self, x, measurement, return_loss=False):
        difference = self(x) - measurement
        gradient = nn.functional.interpolate(difference, scale_factor=self.factor) / self.factor**2
        loss = difference.square().flatten(1).sum(1)
        return (gradient, loss) if return_loss else gradient


class LangevinDynamics:
    def __init__(self, num_steps, lr, tau, seconds):
        self.num_steps, self.lr, self.tau, self.seconds = num_steps, lr, tau, seconds

    def sample(self, x0hat, operator, measurement, sigma):
        lr = self.lr * sigma**2 / (1 + sigma**2)
        x = x0hat.clone().detach().requires_grad_(True)
        optimizer = torch.optim.SGD([x], lr)
        end, step = time.monotonic() + self.seconds, 0
        while step < self.num_steps or time.monotonic() < end:
            optimizer.zero_grad()
            gradient = operator.gradient(x, measurement) / (2 * self.tau**2)
            x.grad = gradient + (x - x0hat) / sigma**2
            optimizer.step()
            with torch.no_grad():
                x.add_(torch.randn_like(x), alpha=(2 * lr) ** 0.5 * 0.01)
            if torch.isnan(x).any():
                return torch.zeros_like(x)
            step += 1
        return x.detach()


class DAPS:
    def __init__(self, net, operator, annealing_sigmas, diffusion_steps=3, langevin=None):
        self.net, self.operator = net, operator
        self.sigmas, self.diffusion_steps = annealing_sigmas, diffusion_steps
        self.langevin = langevin

    @torch.no_grad()
    def reverse_diffusion(self, xt, sigma):
        """Euler steps from this noise level down to none."""
        levels = [sigma * (1 - step / self.diffusion_steps) for step in range(self.diffusion_steps + 1)]
        for current, following in zip(levels[:-1], levels[1:]):
            direction = (xt - self.net(xt, current)) / current
            xt = xt + (following - current) * direction
        return xt

    def inference(self, measurement, shape):
        xt = torch.randn(shape) * self.sigmas[0]
        for sigma, following in zip(self.sigmas, self.sigmas[1:] + [0.0]):
            x0hat = self.reverse_diffusion(xt, sigma)
            x0y = self.langevin.sample(x0hat, self.operator, measurement, sigma)
            xt = x0y + torch.randn_like(x0y) * following
        return xt
