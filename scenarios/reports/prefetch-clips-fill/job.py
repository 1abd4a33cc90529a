"""Video clips (RGB and flow) are prefetched far ahead: the loader's queue fills for some seconds, then stays full."""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class ClipDataset(Dataset):
    def __init__(self, clips, frames=8, size=112):
        self.clips, self.frames, self.size = clips, frames, size

    def __len__(self):
        return self.clips

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        first = rng.random((3, 1, self.size, self.size), np.float32)
        motion = np.cumsum(rng.normal(0, 0.02, (3, self.frames, 1, 1)), axis=1).astype(np.float32)
        rgb = np.clip(first + motion, 0, 1)
        for _ in range(10):  # the decoder's deblocking
            rgb = (rgb + np.roll(rgb, 1, 2) + np.roll(rgb, 1, 3)) / 3
        flow = np.diff(rgb, axis=1, prepend=rgb[:, :1])[:2]
        return torch.from_numpy(rgb), torch.from_numpy(flow), int(motion[0, -1, 0, 0] > 0)


class TwoStream(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rgb = torch.nn.Conv3d(3, 16, (3, 7, 7), stride=(1, 2, 2))
        self.flow = torch.nn.Conv3d(2, 16, (3, 7, 7), stride=(1, 2, 2))
        self.mix = torch.nn.Conv3d(32, 32, 3, stride=2)
        self.head = torch.nn.Linear(32, 2)

    def forward(self, rgb, flow):
        both = torch.cat([self.rgb(rgb), self.flow(flow)], 1).relu()
        return self.head(self.mix(both).relu().mean((2, 3, 4)))


def main():
    torch.set_num_threads(1)
    loader = DataLoader(ClipDataset(8 * 120), batch_size=8, shuffle=True, num_workers=2, prefetch_factor=24)
    model = TwoStream()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    until = time.monotonic() + 35
    for step, (rgb, flow, label) in enumerate(loader):
        if time.monotonic() > until:
            break
        loss = torch.nn.functional.cross_entropy(model(rgb, flow), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
