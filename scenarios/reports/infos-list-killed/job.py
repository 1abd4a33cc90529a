"""StreamPETR's shape: two ranks by Popen, `self.data_infos: list[dict]` in each, and many loader workers that read it."""

import os
import random
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WORLD_SIZE = 2
WORKERS = 3


class CustomNuScenesDataset(Dataset):
    def __init__(self, ann_file_seed):
        self.data_infos = self.load_annotations(ann_file_seed)

    def load_annotations(self, seed):
        rnd = random.Random(seed)
        infos = []
        for n in range(38_000):
            boxes = [[rnd.random() * 50, rnd.random() * 50, rnd.random() * 3, rnd.random()] for _ in range(9)]
            infos.append(
                {
                    "token": f"{seed:02d}-{n:032x}",
                    "timestamp": 1_500_000_000_000_000 + n * 500_000,
                    "lidar_path": f"samples/LIDAR_TOP/{n:08d}__LIDAR_TOP.pcd.bin",
                    "gt_boxes": boxes,
                    "gt_names": [rnd.choice(["car", "truck", "bus", "cone"]) for _ in boxes],
                    "cams": {f"CAM_{side}": f"samples/CAM_{side}/{n:08d}.jpg" for side in range(6)},
                }
            )
        return infos

    def __len__(self):
        return len(self.data_infos)

    def get_ann_info(self, index):
        info = self.data_infos[index]
        flat = [value for box in info["gt_boxes"] for value in box]
        labels = [len(name) for name in info["gt_names"]]
        return torch.tensor(flat), torch.tensor(labels)

    def __getitem__(self, index):
        time.sleep(0.02)  # six pictures from a network disk
        boxes, labels = self.get_ann_info(index)
        generator = torch.Generator().manual_seed(index)
        history = torch.randint(1, 2000, (8,), generator=generator).sort().values.tolist()
        queue = [self.data_infos[index]["timestamp"]]
        for back in history:  # frames of the sequence before this one, with their boxes
            earlier = (index - back) % len(self)
            past, _ = self.get_ann_info(earlier)
            boxes = torch.lerp(boxes, past, 0.01)
            queue.append(self.data_infos[earlier]["timestamp"])
        image = torch.rand(3, 128, 192, generator=generator)
        return image, boxes, labels, (queue[0] - queue[-1]) / 1e6


def train(rank):
    torch.set_num_threads(1)
    dataset = CustomNuScenesDataset(rank)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 62 * 94, 36)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=WORKERS, persistent_workers=True)
    for epoch in range(3):
        for step, (image, boxes, labels, gap) in enumerate(loader):
            loss = (model(image) - boxes).abs().mean() + 0 * gap.float().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"[rank {rank}] epoch {epoch} step {step} loss {loss.item():.2f}", flush=True)


def main():
    children = []
    for rank in range(WORLD_SIZE):
        env = dict(os.environ, LOCAL_RANK=str(rank), RANK=str(rank), WORLD_SIZE=str(WORLD_SIZE))
        children.append(subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=env))
    while True:
        time.sleep(0.25)
        codes = [child.poll() for child in children]
        for rank, code in enumerate(codes):
            if code:
                print(f"[rank: {rank}] Child process with PID {children[rank].pid} terminated with code {code}")
        if any(codes):
            for child in children:
                child.kill()
                child.wait()
            return 1
        if all(code == 0 for code in codes):
            return 0


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        train(int(os.environ["LOCAL_RANK"]))
    else:
        sys.exit(main())
