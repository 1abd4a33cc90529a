"""Augmentations that mix an image with former ones, which wait in a cache of the transform"""

import copy

import numpy as np
import torch
from torch import nn


def resize(img, size):
    """Bilinear, of an image of bytes"""
    small = torch.from_numpy(np.ascontiguousarray(img)).permute(2, 0, 1)[None].float()
    scaled = nn.functional.interpolate(small, size=size, mode="bilinear", align_corners=False)
    return scaled[0].round_().clamp_(0, 255).to(torch.uint8).permute(1, 2, 0).numpy()


class CachedMosaic:
    """Four images in one; three of them come from the cache, which a random one leaves when it is full"""

    def __init__(self, img_scale, max_cached_images=40):
        assert max_cached_images >= 4
        self.img_scale, self.max_cached_images = img_scale, max_cached_images
        self.results_cache = []

    def __call__(self, results, rng):
        self.results_cache.append(copy.deepcopy(results))
        if len(self.results_cache) > self.max_cached_images:
            self.results_cache.pop(rng.integers(0, len(self.results_cache) - 1))
        if len(self.results_cache) <= 4:
            return results
        others = [copy.deepcopy(self.results_cache[i]) for i in rng.integers(0, len(self.results_cache), 3)]
        side = self.img_scale
        canvas = np.full((2 * side, 2 * side, 3), 114, np.uint8)
        boxes, labels = [], []
        for place, patch in enumerate([results, *others]):
            height, width = patch["img"].shape[:2]
            ratio = min(side / height, side / width)
            img = resize(patch["img"], (int(height * ratio), int(width * ratio)))
            top, left = (place // 2) * side, (place % 2) * side
            canvas[top : top + img.shape[0], left : left + img.shape[1]] = img
            boxes.append(patch["boxes"] * ratio + np.float32([left, top, left, top]))
            labels.append(patch["labels"])
        return {"img": canvas, "boxes": np.concatenate(boxes), "labels": np.concatenate(labels)}


class RandomResizedCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, results, rng):
        height, width = results["img"].shape[:2]
        ratio = rng.uniform(0.6, 1.2) * max(self.size / height, self.size / width, 0.8)
        height, width = max(int(height * ratio), self.size), max(int(width * ratio), self.size)
        img = resize(results["img"], (height, width))
        top, left = rng.integers(0, height - self.size + 1), rng.integers(0, width - self.size + 1)
        boxes = results["boxes"] * ratio - np.float32([left, top, left, top])
        inside = (boxes[:, :2] < self.size).all(1) & (boxes[:, 2:] > 0).all(1)
        img = np.ascontiguousarray(img[top : top + self.size, left : left + self.size])
        return {"img": img, "boxes": boxes[inside].clip(0, self.size), "labels": results["labels"][inside]}


class CachedMixUp:
    """Half of the image, and half of one from the cache"""

    def __init__(self, max_cached_images=20, prob=0.5):
        self.max_cached_images, self.prob = max_cached_images, prob
        self.results_cache = []

    def __call__(self, results, rng):
        self.results_cache.append(copy.deepcopy(results))
        if len(self.results_cache) > self.max_cached_images:
            self.results_cache.pop(rng.integers(0, len(self.results_cache) - 1))
        if len(self.results_cache) <= 1 or rng.random() > self.prob:
            return results
        other = copy.deepcopy(self.results_cache[rng.integers(0, len(self.results_cache) - 1)])
        mixed = (results["img"].astype(np.uint16) + other["img"]) // 2
        return {
            "img": mixed.astype(np.uint8),
            "boxes": np.concatenate([results["boxes"], other["boxes"]]),
            "labels": np.concatenate([results["labels"], other["labels"]]),
        }


class RandomFlip:
    def __call__(self, results, rng):
        if rng.random() < 0.5:
            width = results["img"].shape[1]
            results["img"] = np.ascontiguousarray(results["img"][:, ::-1])
            results["boxes"] = results["boxes"][:, [2, 1, 0, 3]] * np.float32([-1, 1, -1, 1])
            results["boxes"][:, [0, 2]] += width
        return results
