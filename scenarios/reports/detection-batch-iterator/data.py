"""A data set for detection, decoded into memory before the training"""

import torch
from torch.utils.data import Dataset


class Detections(Dataset):
    def __init__(self, images, side, classes):
        generator = torch.Generator().manual_seed(2)
        self.images = torch.empty(images, 3, side, side, dtype=torch.uint8)
        self.targets = []
        for number in range(images):
            self.images[number] = torch.randint(0, 256, (3, side, side), generator=generator, dtype=torch.uint8)
            count = int(torch.randint(1, 5, (1,), generator=generator))
            corners = torch.rand(count, 4, generator=generator).view(count, 2, 2).sort(1).values.flatten(1)
            labels = torch.randint(0, classes, (count, 1), generator=generator).float()
            self.targets.append(torch.cat([corners, labels], 1))

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index].float() / 255 - 0.5, self.targets[index]


def detection_collate(batch):
    """The images as one tensor; the boxes as a list, since each image has its own number of them"""
    return torch.stack([image for image, _ in batch]), [boxes for _, boxes in batch]
