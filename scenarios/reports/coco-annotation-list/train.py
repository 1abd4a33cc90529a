"""Detection: the annotations of the training set stay in memory as a list of dicts, as COCO's JSON gives them."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ANNOTATIONS, SECONDS = 170_000, 24.0


def create_coco():
    """Stands in for json.load(instances_train.json)["annotations"]."""
    rng = np.random.default_rng(0)
    points = rng.integers(8, 24, ANNOTATIONS)
    coordinates = rng.random(int(points.sum()) * 2) * 640
    boxes, categories = rng.random((ANNOTATIONS, 4)) * 640, rng.integers(0, 80, ANNOTATIONS)
    annotations, position = [], 0
    for n in range(ANNOTATIONS):
        size = int(points[n]) * 2
        annotations.append(
            {
                "segmentation": [coordinates[position : position + size].tolist()],
                "area": float(boxes[n, 2] * boxes[n, 3]),
                "iscrowd": 0,
                "image_id": n // 7 + 300_000,
                "bbox": boxes[n].tolist(),
                "category_id": int(categories[n]),
                "id": n + 900_000,
            }
        )
        position += size
    return annotations


class DatasetFromList(Dataset):
    def __init__(self, lst):
        self.lst = lst

    def __len__(self):
        return len(self.lst)

    def __getitem__(self, idx):
        annotation = self.lst[idx]
        polygon = torch.zeros(48)
        flat = annotation["segmentation"][0]
        polygon[: len(flat)] = torch.tensor(flat)
        return polygon, torch.tensor(annotation["bbox"]), annotation["category_id"]


class BoxHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(52, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 80))

    def forward(self, polygon, box):
        return self.body(torch.cat([polygon, box], dim=1) / 640)


def main():
    torch.set_num_threads(1)
    dataset = DatasetFromList(create_coco())
    loader = DataLoader(dataset, batch_size=128, shuffle=True, num_workers=3)
    model = BoxHead()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    end, epoch = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for step, (polygon, box, category) in enumerate(loader):
            for _ in range(2):
                loss = nn.functional.cross_entropy(model(polygon, box), category)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
            if time.monotonic() > end:
                break
        epoch += 1


if __name__ == "__main__":
    main()
