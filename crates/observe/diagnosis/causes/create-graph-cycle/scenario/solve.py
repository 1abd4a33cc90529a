"""Problems are solved one after the other, each with a parameter of its own: `solve.py backward|reset|grad SECONDS`."""

import sys
import time

import torch

how, seconds = sys.argv[1], float(sys.argv[2])


def curvature(features):
    weight = torch.nn.Parameter(torch.randn(384, 384) / 30)
    loss = torch.tanh(features @ weight).square().mean()
    if how == "grad":
        gradient = torch.autograd.grad(loss, weight, create_graph=True)[0]
    else:
        loss.backward(create_graph=True)
        gradient = weight.grad
    direction = torch.randn_like(weight)
    found = float((torch.autograd.grad((gradient * direction).sum(), weight)[0] * direction).sum())
    if how == "reset":
        weight.grad = None
    return found


torch.set_num_threads(1)
end = time.monotonic() + seconds
while time.monotonic() < end:
    curvature(torch.randn(256, 384))
    time.sleep(0.05)
