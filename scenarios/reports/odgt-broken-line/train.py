"""Train a small box regressor on the records of an annotation file of one JSON object a line"""

import json
import random
import time

import torch
from provider import DataProvider

torch.set_num_threads(1)
RECORDS, BATCH, STEPS = 6000, 16, 1500
ANNOTATIONS, JOINT = "train.odgt", 1463


def annotate(path):
    """The last record of the first part was cut off when that was downloaded, before the parts were joined"""
    rng = random.Random(7)
    with open(path, "w") as file:
        for number in range(RECORDS):
            boxes = [
                {"tag": "person", "box": [*rng.choices(range(30), k=2), *rng.choices(range(4, 18), k=2)]}
                for _ in range(rng.randint(1, 5))
            ]
            line = json.dumps({"seed": number, "gtboxes": boxes, "fpath": f"images/{number:012d}.jpg"})
            file.write((line[:-9] if number == JOINT else line) + "\n")


def main():
    torch.manual_seed(0)
    annotate(ANNOTATIONS)
    provider = DataProvider(ANNOTATIONS, 2, BATCH)
    provider.start()
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 24, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(24, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(6),
        torch.nn.Flatten(), torch.nn.Linear(32 * 36, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    started = time.monotonic()
    for step in range(STEPS):
        images, boxes = provider.next_batch(timeout=9)
        loss = torch.nn.functional.smooth_l1_loss(model(torch.from_numpy(images)[:, None]), torch.from_numpy(boxes))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f} after {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
