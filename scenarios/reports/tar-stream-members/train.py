"""A small classifier of the samples in a tar stream on standard input"""

import json
import sys
import tarfile
import time

import numpy as np
import torch

SECONDS, BATCH, SIDE, CLASSES = 37.0, 128, 16, 10


def tar_file_iterator(fileobj):
    """The name and the content of each regular file of a tar stream"""
    stream = tarfile.open(fileobj=fileobj, mode="r|")
    for info in stream:
        if not info.isreg():
            continue
        yield {"fname": info.name, "data": stream.extractfile(info).read()}


def group_by_keys(files):
    """Samples of the files that have a name in common up to the extension"""
    current = None
    for file in files:
        key, _, suffix = file["fname"].rpartition(".")
        if current is None or key != current["__key__"]:
            if current is not None:
                yield current
            current = {"__key__": key}
        current[suffix] = file["data"]
    if current is not None:
        yield current


def decode(samples):
    for sample in samples:
        described = json.loads(sample["json"])
        image = np.frombuffer(sample["rgb"], np.uint8).reshape(3, described["height"], described["width"])
        yield image.astype(np.float32) / 255.0, int(sample["cls"])


def batched(pairs, size):
    images, labels = [], []
    for image, label in pairs:
        images.append(image)
        labels.append(label)
        if len(images) == size:
            yield torch.from_numpy(np.stack(images)), torch.tensor(labels)
            images, labels = [], []


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(3 * SIDE * SIDE, 192),
        torch.nn.ReLU(),
        torch.nn.Linear(192, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    pairs = decode(group_by_keys(tar_file_iterator(sys.stdin.buffer)))
    started, steps, seen = time.monotonic(), 0, 0
    for images, labels in batched(pairs, BATCH):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, seen = steps + 1, seen + len(labels)
        if steps % 100 == 0:
            print(f"step {steps}: {seen} samples, loss {loss.item():.4f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break
    print(f"{seen} samples", flush=True)


if __name__ == "__main__":
    main()
