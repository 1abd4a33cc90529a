"""Each batch's element is appended to a list as numpy; its storage came from a worker, and keeps a descriptor open."""

import numpy as np
from torch.utils.data import DataLoader, Dataset


class MyDataset(Dataset):
    """Trajectories of agents, rasterized on the fly."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        rng = np.random.default_rng(idx)
        scene = rng.normal(size=(96, 128))
        for _ in range(4):
            scene = np.abs(np.fft.fft2(scene)) / 96
        history = np.cumsum(scene[:50, :2], axis=0)
        return {"d1": history, "availability": np.float32(history[-1].sum() > 0)}


def main():
    dl = DataLoader(MyDataset(60_000 * 64), batch_size=96, num_workers=2, shuffle=False)
    dt_1 = []
    available = 0.0
    for data in dl:
        dt_1.append(data["d1"].numpy())
        available += float(data["availability"].sum())
        if len(dt_1) % 40 == 0:
            print(len(dt_1), available, flush=True)


if __name__ == "__main__":
    main()
