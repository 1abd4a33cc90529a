"""A dataset in one large database file, which the loader's workers map: their resident memory rises with each epoch."""

import mmap
import os
import tempfile

import numpy as np
import torch

IMAGES = 5200
SIDE = 160


class LSUNClass(torch.utils.data.Dataset):
    """A stand-in for LMDB: values one after the other in a file, which is mapped when a worker first reads it."""

    def __init__(self, path, offsets, labels):
        self.path, self.offsets, self.labels = path, offsets, labels
        self.env = None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        if self.env is None:
            with open(self.path, "rb") as file:
                self.env = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        value = np.frombuffer(self.env, np.uint8, SIDE * SIDE * 3, self.offsets[index]).reshape(SIDE, SIDE, 3)
        small = value.reshape(40, 4, 40, 4, 3).mean((1, 3), dtype=np.float32) / 255
        return torch.from_numpy(small).permute(2, 0, 1), int(self.labels[index])


def write_database(path, rng):
    pattern = rng.integers(0, 255, (SIDE, SIDE, 3), np.uint8)
    with open(path, "wb") as file:
        for number in range(IMAGES):
            file.write(np.roll(pattern, number, 0).tobytes())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bedroom_train.mdb")
        write_database(path, rng)
        offsets = np.arange(IMAGES, dtype=np.int64) * SIDE * SIDE * 3
        dataset = LSUNClass(path, offsets, rng.integers(0, 10, IMAGES))
        loader = torch.utils.data.DataLoader(dataset, 64, shuffle=True, num_workers=2, persistent_workers=True)
        layers = [torch.nn.Conv2d(3, 24, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(24, 48, 3, 2), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(48, 10))
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        for epoch in range(2):
            for images, labels in loader:
                for _ in range(4):
                    loss = torch.nn.functional.cross_entropy(model(images), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
