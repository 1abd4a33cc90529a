"""Data sets and loaders for training and validation"""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class YOLODataset(Dataset):
    """Pictures of a resolution, with the boxes of what is on them"""

    def __init__(self, images, imgsz, augment, seed):
        self.images, self.imgsz, self.augment, self.seed = images, imgsz, augment, seed

    def __len__(self):
        return self.images

    def load_image(self, i):
        rng = np.random.default_rng(self.seed + i)
        tile = rng.integers(0, 255, (3, 40, 40), np.uint8)
        scale = self.imgsz // 40
        return np.repeat(np.repeat(tile, scale, 1), scale, 2), rng.random((6, 4), np.float32)

    def __getitem__(self, i):
        img, boxes = self.load_image(i)
        if self.augment:
            gain = np.random.uniform(0.6, 1.4)
            img = np.clip(img.astype(np.float32) * gain, 0, 255).astype(np.uint8)
            if np.random.random() < 0.5:
                img, boxes[:, 0] = img[:, :, ::-1], 1 - boxes[:, 0]
        return {"img": torch.from_numpy(np.ascontiguousarray(img)), "bboxes": torch.from_numpy(boxes)}

    @staticmethod
    def collate_fn(batch):
        index = torch.cat([torch.full((len(one["bboxes"]),), n) for n, one in enumerate(batch)])
        img = torch.stack([one["img"] for one in batch])
        return {"img": img, "bboxes": torch.cat([one["bboxes"] for one in batch]), "batch_idx": index}


class _RepeatSampler:
    """Starts its sampler again and again"""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class InfiniteDataLoader(DataLoader):
    """Uses the same workers for all epochs"""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", _RepeatSampler(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


def build_dataloader(dataset, batch, workers, shuffle):
    return InfiniteDataLoader(
        dataset=dataset,
        batch_size=min(batch, len(dataset)),
        shuffle=shuffle,
        num_workers=workers,
        prefetch_factor=4,
        collate_fn=dataset.collate_fn,
        worker_init_fn=seed_worker,
    )
