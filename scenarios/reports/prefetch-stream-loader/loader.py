"""Loaders of images that copy the next batch on a stream of their own"""

from contextlib import nullcontext

import numpy as np
import torch
from torch.utils.data import DataLoader


def fast_collate(batch):
    images = torch.from_numpy(np.stack([image for image, _ in batch]))
    return images, torch.tensor([target for _, target in batch], dtype=torch.int64)


class PrefetchLoader:
    def __init__(self, loader, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), device="cuda"):
        self.loader, self.device = loader, torch.device(device)
        self.mean = torch.tensor([255 * value for value in mean], device=device).view(1, 3, 1, 1)
        self.std = torch.tensor([255 * value for value in std], device=device).view(1, 3, 1, 1)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        first, stream = True, torch.cuda.Stream(self.device)
        for next_input, next_target in self.loader:
            with torch.cuda.stream(stream):
                next_input = next_input.to(self.device, non_blocking=True)
                next_target = next_target.to(self.device, non_blocking=True)
                next_input = next_input.float().sub_(self.mean).div_(self.std)
            if not first:
                yield images, target
            else:
                first = False
            torch.cuda.current_stream(self.device).wait_stream(stream)
            images, target = next_input, next_target
        yield images, target


def create_loader(dataset, batch_size, training, workers):
    loader = DataLoader(
        dataset, batch_size, shuffle=training, num_workers=workers, collate_fn=fast_collate, pin_memory=True,
        drop_last=training, persistent_workers=True,
    )
    return PrefetchLoader(loader)


def autocast(enabled):
    return torch.autocast("cuda", torch.bfloat16) if enabled else nullcontext()
