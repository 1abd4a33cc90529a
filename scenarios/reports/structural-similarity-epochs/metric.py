"""The structural similarity of predictions and targets, over all of an epoch"""

import torch
from torch import nn


def window(side=7, sigma=1.5):
    places = torch.arange(side) - side // 2
    weights = torch.exp(-(places.float() ** 2) / (2 * sigma**2))
    return (weights[:, None] * weights / weights.sum() ** 2)[None, None]


def ssim(preds, target, c1=1e-4, c2=9e-4):
    both = torch.cat([preds, target, preds * preds, target * target, preds * target])
    mean_p, mean_t, pp, tt, pt = nn.functional.conv2d(both, window()).chunk(5)
    var_p, var_t, cov = pp - mean_p**2, tt - mean_t**2, pt - mean_p * mean_t
    return ((2 * mean_p * mean_t + c1) * (2 * cov + c2)) / ((mean_p**2 + mean_t**2 + c1) * (var_p + var_t + c2))


class SSIM:
    def __init__(self):
        self.reset()

    def update(self, preds, target):
        self.y.append(target)
        self.y_pred.append(preds.detach())

    def compute(self):
        parts = [ssim(preds, target).mean((1, 2, 3)) for preds, target in zip(self.y_pred, self.y)]
        return torch.cat(parts).mean().item()

    def reset(self):
        self.y, self.y_pred = [], []
