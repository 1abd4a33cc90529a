"""Names the animals on all detections of a camera trap's card"""

import collections
import os
import tempfile
import time
import zlib

import numpy as np
import torch
from classifier import TIMM_BaseClassifierInference
from torch.utils.data import Dataset

torch.set_num_threads(1)
IMAGES, SIDE, CROP, BATCH, BATCH_S = 120, 160, 72, 8, 0.15


def fill_card(folder):
    """The pictures of the card, compressed, and the boxes of the detector: eight in each"""
    numbers, boxes = np.random.default_rng(5), []
    ramp = np.linspace(0, 160, SIDE, dtype=np.float32)
    for image in range(IMAGES):
        noise = numbers.integers(0, 60, (SIDE, SIDE, 3))
        picture = (ramp[:, None, None] * numbers.uniform(0.3, 1, 3) + noise).astype(np.uint8)
        path = os.path.join(folder, f"IMG_{image:04}.raw.z")
        with open(path, "wb") as file:
            file.write(zlib.compress(picture.tobytes(), 1))
        boxes += [(path, *numbers.integers(0, SIDE - CROP, 2).tolist()) for _ in range(8)]
    return boxes


class DetectionCrops(Dataset):
    def __init__(self, boxes):
        self.boxes = boxes

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, index):
        path, left, top = self.boxes[index]
        with open(path, "rb") as file:
            picture = np.frombuffer(zlib.decompress(file.read()), np.uint8).reshape(SIDE, SIDE, 3)
        crop = picture[top : top + CROP, left : left + CROP].astype(np.float32) / 255
        return torch.from_numpy(crop.transpose(2, 0, 1).copy()), f"{os.path.basename(path)}:{left},{top}"


class Progress:
    """Keeps to the pace of the card reader, and looks for blurred crops while it waits"""

    def __init__(self):
        self.begin, self.blurred = time.monotonic(), 0

    def __call__(self, done, total, images):
        first = True
        while first or time.monotonic() < self.begin + done * BATCH_S:
            edges = images[:, :, 1:] - images[:, :, :-1]
            count = int((edges.var((1, 2, 3)) < 0.001).sum())
            self.blurred, first = self.blurred + (count if first else 0), False
        if done % 10 == 0:
            print(f"{done} of {total} batches, {self.blurred} crops are blurred", flush=True)


def main():
    torch.manual_seed(0)
    classifier = TIMM_BaseClassifierInference()
    with tempfile.TemporaryDirectory() as folder:
        crops = DetectionCrops(fill_card(folder))
        print(classifier.single_image_classification(*crops[0]), flush=True)
        results = classifier.batch_image_classification(crops, BATCH, 1, Progress())
    print(collections.Counter(result["prediction"] for result in results).most_common(3), flush=True)


if __name__ == "__main__":
    main()
