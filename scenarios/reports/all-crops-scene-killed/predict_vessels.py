"""Detect vessels in radar windows: workers read each window, cut it into crops, and a model scores them"""

import time
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)
CHANNELS, CROP = 6, 128
STARTED = time.monotonic()
FIRST_SCENE_S = 19.0


class Window:
    def __init__(self, name, width, height):
        self.name, self.width, self.height = name, width, height


def catalog(worker, workers):
    """The windows in the order of their acquisition: cut-outs around harbours, and later the scenes themselves"""
    generator = np.random.default_rng(worker)
    number = 0
    while time.monotonic() - STARTED < FIRST_SCENE_S:
        side = CROP * int(generator.integers(3, 6))
        yield Window(f"harbour_{worker}_{number:04d}", side, side)
        number += 1
    if worker == workers - 1:
        yield Window("S1A_IW_GRDH_20260603", 5120, 3840)


class AllCropsDataset(IterableDataset):
    def __init__(self):
        strip = np.random.default_rng(0).gamma(2.0, 30.0, (CROP, 512)).astype(np.uint16)
        self.block = zlib.compress(strip.tobytes(), 6)

    def read(self, window, channel):
        """One band of a window, block by block"""
        band = np.empty((window.height, window.width), dtype=np.float32)
        for top in range(0, window.height, CROP):
            for left in range(0, window.width, 512):
                block = np.frombuffer(zlib.decompress(self.block), dtype=np.uint16).reshape(CROP, 512)
                width = min(512, window.width - left)
                band[top : top + CROP, left : left + width] = block[:, :width]
        return band * np.float32(1 + channel / 10)

    def load_window(self, window):
        bands = [self.read(window, channel)[None] for channel in range(CHANNELS)]
        image = np.concatenate(bands)
        mean = image.mean(axis=(1, 2), keepdims=True)
        return (image - mean) / np.float32(60.0)

    def __iter__(self):
        info = get_worker_info()
        for window in catalog(info.id, info.num_workers):
            image = self.load_window(window)
            crops = []
            for top in range(0, window.height, CROP):
                for left in range(0, window.width, CROP):
                    crops.append(image[:, top : top + CROP, left : left + CROP])
                    if len(crops) == 8:
                        yield window.name, torch.from_numpy(np.stack(crops))
                        crops = []
            if crops:
                yield window.name, torch.from_numpy(np.stack(crops))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(CHANNELS, 24, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(24, 48, 3, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(48, 8, 1), torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten(),
    ).eval()
    loader = DataLoader(
        AllCropsDataset(), batch_size=None, num_workers=2, prefetch_factor=2, multiprocessing_context="fork"
    )
    windows, found = set(), 0
    for name, crops in loader:
        scores = model(crops).amax(1)
        found += int((scores > scores.mean() + scores.std()).sum())
        if name not in windows:
            windows.add(name)
            if len(windows) % 10 == 0:
                print(f"{len(windows)} windows, {found} candidates", flush=True)
    print(f"done: {len(windows)} windows, {found} vessels", flush=True)


if __name__ == "__main__":
    main()
