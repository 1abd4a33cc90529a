"""Images with coloured boxes on noise; annotations in the way of COCO"""

import numpy as np
import torch
from torch.utils.data import Dataset

SIZE, GRID = 128, 8


def make_image(number):
    generator = np.random.default_rng(number)
    image = generator.random((3, SIZE, SIZE), np.float32) * 0.5
    boxes = []
    for _ in range(3):
        left, top = generator.integers(0, SIZE - 40, 2)
        width, height = generator.integers(12, 40, 2)
        image[generator.integers(0, 3), top : top + height, left : left + width] += 0.5
        boxes.append((int(left), int(top), int(width), int(height)))
    return image, boxes


class TrainSet(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        image, boxes = make_image(index)
        target = np.zeros((5, GRID, GRID), np.float32)
        cell = SIZE // GRID
        for left, top, width, height in boxes:
            x, y = left + width / 2, top + height / 2
            target[:, int(y) // cell, int(x) // cell] = 1, x % cell / cell, y % cell / cell, width / SIZE, height / SIZE
        return torch.from_numpy(image), torch.from_numpy(target)


class ValidationSet(Dataset):
    next_id = 0

    def __init__(self, length, offset=1_000_000):
        self.length, self.offset = length, offset

    def __len__(self):
        return self.length

    def get_image_id(self, index):
        number = ValidationSet.next_id
        ValidationSet.next_id += 1
        return number

    def __getitem__(self, index):
        image, _ = make_image(self.offset + index)
        return torch.from_numpy(image), self.get_image_id(index)

    def annotations(self):
        images = [{"id": number, "width": SIZE, "height": SIZE} for number in range(self.length)]
        boxes = []
        for number in range(self.length):
            for box in make_image(self.offset + number)[1]:
                boxes.append({"image_id": number, "bbox": box, "area": box[2] * box[3], "category_id": 1})
        return {"images": images, "annotations": boxes}
