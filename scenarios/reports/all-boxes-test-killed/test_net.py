"""Test a detector that was trained with labels of whole images; proposals come from a file"""

import argparse
import pickle
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
CLASSES, PROPOSALS, SCALES = 80, 600, (96, 144)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
        )
        self.box = nn.Sequential(nn.Linear(64 * 4, 256), nn.ReLU())
        self.refine = nn.ModuleList(nn.Linear(256, CLASSES) for _ in range(3))

    def forward(self, image, boxes):
        maps = self.body(image)[0]
        height, width = maps.shape[1:]
        corners = []
        for x, y in ((0, 1), (2, 1), (0, 3), (2, 3)):
            column = (boxes[:, x] * (width - 1)).long()
            row = (boxes[:, y] * (height - 1)).long()
            corners.append(maps[:, row, column].t())
        hidden = self.box(torch.cat(corners, dim=1))
        return sum(head(hidden).softmax(dim=1) for head in self.refine) / len(self.refine)


def read_image(number):
    rng = np.random.default_rng(number)
    image = torch.from_numpy(rng.random((1, 3, 176, 176), np.float32))
    corners = np.sort(rng.random((PROPOSALS, 2, 2), np.float32), axis=1).reshape(PROPOSALS, 4)
    return image, torch.from_numpy(corners)


def im_detect(model, image, boxes):
    scores = torch.zeros(len(boxes), CLASSES)
    for scale in SCALES:
        scaled = nn.functional.interpolate(image, size=(scale, scale), mode="bilinear")
        scores += model(scaled, boxes)
        mirrored = torch.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], dim=1)
        scores += model(scaled.flip(3), mirrored)
    return (scores / (2 * len(SCALES))).numpy(), (boxes * 480).numpy()


def test_net(model, images):
    all_boxes = [[[] for _ in range(images)] for _ in range(CLASSES)]
    begin = time.monotonic()
    for i in range(images):
        scores, boxes = im_detect(model, *read_image(i))
        for j in range(CLASSES):
            all_boxes[j][i] = np.hstack((boxes, scores[:, j][:, np.newaxis]))
        if (i + 1) % 10 == 0:
            average = (time.monotonic() - begin) / (i + 1)
            eta = int(average * (images - i - 1))
            print(f"im_detect: range [1, {images}] of {images}: {i + 1}/{images} {average:.3f}s (eta: {eta} s)")
    return all_boxes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset")
    parser.add_argument("--images", type=int)
    args = parser.parse_args()
    torch.manual_seed(4)
    model = Detector().eval()
    with torch.no_grad():
        all_boxes = test_net(model, args.images)
    with open("detections.pkl", "wb") as file:
        pickle.dump({"dataset": args.dataset, "all_boxes": all_boxes}, file, pickle.HIGHEST_PROTOCOL)
    print(f"wrote the detections of {args.images} images")


if __name__ == "__main__":
    main()
