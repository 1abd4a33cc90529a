"""The loader of a detection trainer: registered images, mapped to tensors, in batches of one aspect ratio."""

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class TrainingStream(IterableDataset):
    """Records in an endless random order, each mapped to an image at a random training size."""

    def __init__(self, records, seed):
        self.records, self.seed, self.passes = records, seed, 0

    def load(self, record, rng):
        height, width = record["height"], record["width"]
        scale = rng.choice([0.8, 0.9, 1.0, 1.1])
        noise = np.random.default_rng(record["id"]).integers(0, 255, (3, height // 8, width // 8), np.uint8)
        image = torch.from_numpy(noise).unsqueeze(0).float()
        image = torch.nn.functional.interpolate(image, size=(int(height * scale), int(width * scale)), mode="bilinear")
        if rng.random() < 0.5:
            image = image.flip(3)
        return {**record, "image": image[0].byte(), "label": record["id"] % 20}

    def __iter__(self):
        self.passes += 1
        rng = np.random.default_rng((self.seed, self.passes))
        while True:
            for index in rng.permutation(len(self.records)):
                yield self.load(self.records[index], rng)


class AspectRatioGrouped(IterableDataset):
    """Collects images wider than high, and the others, until there are enough of a kind for a batch."""

    def __init__(self, dataset, batch_size):
        self.dataset, self.batch_size = dataset, batch_size
        self.buckets = [[], []]

    def __iter__(self):
        for example in self.dataset:
            bucket = self.buckets[0 if example["width"] > example["height"] else 1]
            bucket.append(example)
            if len(bucket) == self.batch_size:
                yield bucket[:]
                del bucket[:]


def take_single(batch):
    return batch[0]


def build_detection_train_loader(records, images_per_batch, num_workers=0):
    stream = TrainingStream(records, seed=7)
    singles = DataLoader(stream, batch_size=1, num_workers=num_workers, collate_fn=take_single)
    return AspectRatioGrouped(singles, images_per_batch)
