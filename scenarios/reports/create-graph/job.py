"""A second-order optimizer asks for backward(create_graph=True) in every problem that it solves anew."""

import sys
import time

import torch

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0


def solve(features):
    weight = torch.nn.Parameter(torch.randn(features.shape[1], 384) / 30)
    loss = torch.tanh(features @ weight).square().mean()
    loss.backward(create_graph=True)
    direction = torch.randn_like(weight)
    curvature = torch.autograd.grad((weight.grad * direction).sum(), weight)[0]
    return float((curvature * direction).sum())


def main():
    end = time.monotonic() + SECONDS
    curvatures = []
    while time.monotonic() < end:
        features = torch.randn(1500, 1500)
        features = torch.tanh(features @ features)[:256, :384].contiguous()
        curvatures.append(solve(features))
        time.sleep(0.05)


torch.set_num_threads(1)
main()
