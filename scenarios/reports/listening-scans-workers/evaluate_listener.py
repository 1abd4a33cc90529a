"""Evaluate a listener on references to objects in scanned rooms, scan by scan"""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SCANS, OBJECTS, POINTS = 300, 32, 500
BATCH, SAMPLED = 16, 48
DEVICE_S = 0.04


class ThreeDObject:
    def __init__(self, object_id, label, points):
        self.object_id, self.label, self.points = object_id, label, points

    def center(self):
        return sum(self.points) / len(self.points)

    def sample(self, generator):
        picks = generator.integers(0, len(self.points), SAMPLED).tolist()
        return [self.points[pick] for pick in picks]


class ScannetScan:
    def __init__(self, scan_id, cloud, objects):
        self.scan_id, self.cloud, self.three_d_objects = scan_id, cloud, objects


def load_scans():
    generator = np.random.default_rng(7)
    scans = {}
    for number in range(SCANS):
        cloud = generator.standard_normal((4096, 6), dtype=np.float32)[:256]
        segments = generator.integers(1000, 2_000_000, (OBJECTS, POINTS)).tolist()
        objects = [ThreeDObject(i, i % 18, points) for i, points in enumerate(segments)]
        scans[f"scene{number:04d}_00"] = ScannetScan(f"scene{number:04d}_00", cloud.copy(), objects)
    return scans


def load_references(scans):
    """Every scan has as many utterances as two batches"""
    generator = np.random.default_rng(8)
    references = []
    for scan_id in scans:
        for _ in range(2 * BATCH):
            references.append((scan_id, int(generator.integers(OBJECTS)), generator.integers(0, 900, 16).tolist()))
    return references


class ListeningDataset(Dataset):
    def __init__(self, references, scans):
        self.references, self.scans = references, scans

    def __len__(self):
        return len(self.references)

    def __getitem__(self, index):
        scan_id, target, tokens = self.references[index]
        scan = self.scans[scan_id]
        generator = np.random.default_rng(index)
        boxes, points = [], []
        for item in scan.three_d_objects:
            boxes.append([item.center() / 1e6, float(item.label), float(len(item.points)) / POINTS])
            points.append(item.sample(generator))
        picked = np.asarray(points, dtype=np.int64) % len(scan.cloud)
        return {
            "objects": torch.from_numpy(scan.cloud[picked].mean(axis=1)),
            "boxes": torch.tensor(boxes),
            "tokens": torch.tensor(tokens),
            "target": target,
        }


class Listener(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.EmbeddingBag(900, 64)
        self.objects = torch.nn.Sequential(torch.nn.Linear(9, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))

    def forward(self, batch):
        features = self.objects(torch.cat([batch["objects"], batch["boxes"]], dim=2))
        return torch.einsum("bof,bf->bo", features, self.words(batch["tokens"]))


@torch.inference_mode()
def main():
    scans = load_scans()
    dataset = ListeningDataset(load_references(scans), scans)
    print(f"{len(scans)} scans, {len(dataset)} utterances", flush=True)
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=2, multiprocessing_context="fork")
    model, right, seen = Listener().eval(), 0, 0
    for number, batch in enumerate(loader, 1):
        logits = model(batch)
        time.sleep(DEVICE_S)  # the encoder of the point clouds runs elsewhere
        right += int((logits.argmax(1) == batch["target"]).sum())
        seen += len(logits)
        if number % 50 == 0:
            print(f"batch {number} of {len(loader)}: accuracy {right / seen:.3f}", flush=True)


if __name__ == "__main__":
    main()
