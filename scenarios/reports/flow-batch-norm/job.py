"""Density estimation with a normalising flow: coupling layers with batch norm between them, trained on two moons."""

import math

import torch

ITERATIONS = 700


class BatchNorm(torch.nn.Module):
    """Transform that normalises its inputs; the statistics of the batch in training, the running ones otherwise."""

    def __init__(self, features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.unconstrained_weight = torch.nn.Parameter(math.log(math.exp(1 - eps) - 1) * torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.zeros(features))

    def forward(self, inputs):
        if self.training:
            mean, var = inputs.mean(0), inputs.var(0)
            self.running_mean.mul_(1 - self.momentum).add_(mean * self.momentum)
            self.running_var.mul_(1 - self.momentum).add_(var * self.momentum)
        else:
            mean, var = self.running_mean, self.running_var
        weight = torch.nn.functional.softplus(self.unconstrained_weight) + self.eps
        outputs = weight * (inputs - mean) / torch.sqrt(var + self.eps) + self.bias
        logabsdet = torch.log(weight) - 0.5 * torch.log(var + self.eps)
        return outputs, logabsdet.sum() * inputs.new_ones(len(inputs))


class Coupling(torch.nn.Module):
    def __init__(self, features, hidden, flip):
        super().__init__()
        self.flip = flip
        half = features // 2
        layers = [torch.nn.Linear(half, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden), torch.nn.ReLU()]
        self.net = torch.nn.Sequential(*layers, torch.nn.Linear(hidden, 2 * half))

    def forward(self, inputs):
        kept, changed = inputs.chunk(2, dim=1)[:: -1 if self.flip else 1]
        shift, scale = self.net(kept).chunk(2, dim=1)
        scale = torch.sigmoid(scale + 2) + 1e-3
        changed = changed * scale + shift
        parts = (changed, kept) if self.flip else (kept, changed)
        return torch.cat(parts, dim=1), torch.log(scale).sum(dim=1)


class SimpleRealNVP(torch.nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        steps = [step for n in range(layers) for step in (Coupling(features, hidden, n % 2 == 1), BatchNorm(features))]
        self.steps = torch.nn.ModuleList(steps)

    def log_prob(self, inputs):
        total = torch.zeros(len(inputs))
        for step in self.steps:
            inputs, logabsdet = step(inputs)
            total = total + logabsdet
        return total - 0.5 * (inputs**2).sum(dim=1) - math.log(2 * math.pi)


def make_moons(count, noise=0.1):
    angle = torch.rand(count) * math.pi
    lower = torch.arange(count) % 2 == 1
    x = torch.where(lower, 1 - torch.cos(angle), torch.cos(angle))
    y = torch.where(lower, 0.5 - torch.sin(angle), torch.sin(angle))
    return torch.stack([x, y], dim=1) + noise * torch.randn(count, 2)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    flow = SimpleRealNVP(features=2, hidden=32, layers=24)
    optimizer = torch.optim.Adam(flow.parameters(), 1e-4)
    for iteration in range(ITERATIONS):
        x = make_moons(1024)
        optimizer.zero_grad()
        loss = -flow.log_prob(x).mean()
        loss.backward()
        optimizer.step()
        if iteration % 100 == 0:
            print(f"iteration {iteration}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
