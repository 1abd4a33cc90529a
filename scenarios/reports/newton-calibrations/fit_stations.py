"""Fits a response function to each station of a network, with a second order method"""

import math
import time

import torch
from torch import nn

SECONDS = 26.0
SAMPLES, FEATURES, WIDTH = 640, 48, 160


class Minimizer(torch.optim.Optimizer):
    """Newton-CG over all parameters of a module; the closure gives the loss"""

    def __init__(self, params, max_iter=8, cg_iter=8, damping=0.1):
        super().__init__(list(params), {"max_iter": max_iter})
        self.cg_iter, self.damping = cg_iter, damping
        self.params = self.param_groups[0]["params"]

    def gather_gradient(self, closure):
        self.zero_grad(set_to_none=True)
        with torch.enable_grad():
            loss = closure()
            loss.backward(create_graph=True)
        return loss.detach(), torch.cat([p.grad.reshape(-1) for p in self.params])

    def hessian_product(self, gradient, vector):
        products = torch.autograd.grad(gradient, self.params, vector, retain_graph=True)
        return torch.cat([p.reshape(-1) for p in products])

    def direction(self, gradient):
        x = torch.zeros_like(gradient)
        residual = -gradient.detach()
        d, delta = residual.clone(), residual.dot(residual)
        start = delta
        for _ in range(self.cg_iter):
            product = self.hessian_product(gradient, d) + self.damping * d
            curvature = d.dot(product)
            if curvature <= 0:
                return x if x.any() else residual
            alpha = delta / curvature
            x = x + alpha * d
            residual = residual - alpha * product
            new = residual.dot(residual)
            if new < 1e-4 * start:
                break
            d, delta = residual + (new / delta) * d, new
        return x

    def step(self, closure):
        history = []
        for _ in range(self.param_groups[0]["max_iter"]):
            loss, gradient = self.gather_gradient(closure)
            step = self.direction(gradient)
            offset = 0
            with torch.no_grad():
                for p in self.params:
                    p.add_(step[offset : offset + p.numel()].view_as(p), alpha=0.5)
                    offset += p.numel()
            history.append(loss.item())
        return history[-1]


class Response(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 3)
        )

    def forward(self, x):
        return self.net(x)


def observations(station):
    generator = torch.Generator().manual_seed(station)
    x = torch.randn(SAMPLES, FEATURES, generator=generator)
    mixing = torch.randn(FEATURES, 3, generator=generator) / math.sqrt(FEATURES)
    return x, torch.tanh(x @ mixing) + 0.05 * torch.randn(SAMPLES, 3, generator=generator)


def fit(station):
    x, y = observations(station)
    model = Response()
    minimizer = Minimizer(model.parameters())

    def closure():
        return nn.functional.mse_loss(model(x), y)

    before = closure().item()
    minimizer.step(closure)
    with torch.no_grad():
        after = nn.functional.mse_loss(model(x), y).item()
        return before, after, model(x).std(dim=0).tolist()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    started, station = time.monotonic(), 0
    with open("stations.csv", "w") as table:
        while time.monotonic() - started < SECONDS:
            station += 1
            before, after, spread = fit(station)
            table.write(f"{station},{before:.5f},{after:.5f},{','.join(f'{s:.4f}' for s in spread)}\n")
            if station % 20 == 0:
                print(f"station {station}: {before:.4f} -> {after:.4f}", flush=True)


if __name__ == "__main__":
    main()
