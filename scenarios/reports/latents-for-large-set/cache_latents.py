"""Caches the latents of a training set: loader workers crop and encode its images."""

import numpy as np
import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

torch.multiprocessing.set_sharing_strategy("file_system")


class ImageInfo:
    def __init__(self, image_key):
        self.image_key = image_key
        self.latents = self.latents_flipped = self.original_size = self.crop_ltrb = None


class CropDataset(Dataset):
    """Crops of an image's bucket, encoded to 4 channels at an eighth of its size."""

    def __init__(self, infos):
        self.infos = infos
        self.filters = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def __len__(self):
        return len(self.infos)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = rng.random((3, 96, 96), np.float32)
        pooled = image.reshape(3, 12, 8, 12, 8).mean(axis=(2, 4))
        latents = torch.from_numpy(np.tensordot(self.filters, pooled, axes=1))
        size = torch.tensor([96 + index % 7, 96 + index % 5])
        return index, latents, latents.flip(2), size, torch.tensor([0, 0, 96, 96])


class DreamBoothDataset:
    def __init__(self, images):
        self.image_data = [ImageInfo(f"{n:06d}.png") for n in range(images)]

    def cache_latents(self, workers):
        loader = DataLoader(CropDataset(self.image_data), batch_size=8, num_workers=workers, collate_fn=list)
        cached = 0
        for batch in loader:
            for index, latents, flipped, size, crop in batch:
                info = self.image_data[index]
                info.latents, info.latents_flipped = latents, flipped
                info.original_size, info.crop_ltrb = size, crop
            cached += len(batch)
            if cached % 1000 == 0:
                print(f"cached latents of {cached} of {len(self.image_data)} images", flush=True)

    def statistics(self):
        latents = torch.stack([info.latents for info in self.image_data])
        return latents.mean().item(), latents.std().item()


def main():
    torch.set_num_threads(1)
    dataset = DreamBoothDataset(52_000)
    dataset.cache_latents(workers=2)
    print("mean and deviation of the latents:", dataset.statistics())


if __name__ == "__main__":
    main()
