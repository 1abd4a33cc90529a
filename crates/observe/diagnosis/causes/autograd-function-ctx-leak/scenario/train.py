"""Trains with a function of its own that keeps its output: as an attribute of ctx (attribute), or as torch wants."""

import sys
import time

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 2 * x
        if sys.argv[1] == "attribute":
            ctx.y = y
        else:
            ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y = ctx.y if sys.argv[1] == "attribute" else ctx.saved_tensors[0]
        return 2 * gradient + 0 * y


weight = torch.ones(2 << 20, requires_grad=True)
for _ in range(120):
    Double.apply(weight).sum().backward()
    weight.grad = None
    time.sleep(0.1)
