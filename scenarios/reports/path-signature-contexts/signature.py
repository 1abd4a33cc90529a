"""The signature of a path up to its second level, whose backward pass walks back from the signature itself"""

import torch
from torch import nn


def split(signature, channels):
    return signature[:, :channels], signature[:, channels:].view(-1, channels, channels)


class SignatureFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, path):
        steps = path[:, 1:] - path[:, :-1]
        before = steps.cumsum(1) - steps
        area = torch.einsum("bla,blc->bac", before, steps) + torch.einsum("bla,blc->bac", steps, steps) / 2
        signature = torch.cat([steps.sum(1), area.flatten(1)], 1)
        ctx.path, ctx.terms = path, split(signature, path.shape[2])
        return signature

    @staticmethod
    def backward(ctx, gradient):
        path, (level1, _) = ctx.path.detach(), ctx.terms
        slope1, slope2 = split(gradient, path.shape[2])
        steps = path[:, 1:] - path[:, :-1]
        # Back from the end: what a step added is taken away again
        after = steps.flip(1).cumsum(1).flip(1) - steps
        before = level1[:, None] - after - steps
        slopes = slope1[:, None] + before @ slope2 + after @ slope2.mT + steps @ (slope2 + slope2.mT) / 2
        return nn.functional.pad(slopes, (0, 0, 1, 0)) - nn.functional.pad(slopes, (0, 0, 0, 1))


def signature(path):
    return SignatureFunction.apply(path)


class Augment(nn.Module):
    """Time, the path as it is, and channels that are learnt from it"""

    def __init__(self, channels, learnt):
        super().__init__()
        self.convolve = nn.Conv1d(channels, learnt, 5, padding=2)

    def forward(self, path):
        time = torch.linspace(0, 1, path.shape[1])[None, :, None].expand(len(path), -1, 1)
        learnt = torch.tanh(self.convolve(path.transpose(1, 2))).transpose(1, 2)
        return torch.cat([time, path, learnt], 2)
