"""Classifies the photos of a folder with a vision model, and counts how often it agrees with a second question"""

import base64
import time

import numpy as np
import torch
from torch import nn

from dspy_image import Image, Predict, settings

torch.set_num_threads(1)
PHOTOS, PHOTO_S = 96, 0.3
HEIGHT, WIDTH = 1250, 1700


class VisionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 7, 4), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten()
        )
        self.head = nn.Linear(288 + 1, 12)

    @torch.inference_mode()
    def forward(self, messages):
        photo, letters = None, 0
        for part in messages[0]["content"]:
            if part["type"] == "text":
                letters += len(part["text"])
            else:
                data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
                photo = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(HEIGHT, WIDTH, 3)
        small = photo[::4, ::4].permute(2, 0, 1)[None].float() / 255
        features = torch.cat([self.layers(small)[0], torch.tensor([letters / 100])])
        return int(self.head(features).argmax())


def photos():
    """Stands in for the folder"""
    numbers = np.random.default_rng(4)
    scene = numbers.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    for number in range(PHOTOS):
        yield np.roll(scene, 16 * number, 0).tobytes()


def main():
    torch.manual_seed(0)
    model = VisionModel().eval()
    classify = Predict("photo -> category", model)
    check = Predict("photo, category -> better category", model)
    agreed = 0
    for number, data in enumerate(photos()):
        until, rounds = time.monotonic() + PHOTO_S, 0
        photo = Image.from_bytes(data)
        while rounds == 0 or time.monotonic() < until:
            category = classify(photo=photo)
            same = check(photo=photo, category=category) == category
            settings.trace.clear()
            rounds += 1
        agreed += same
        if (number + 1) % 12 == 0:
            print(f"{number + 1} photos, {agreed} agreed", flush=True)


if __name__ == "__main__":
    main()
