"""Speech recognition on cuts of very different length; the sampler buffers cuts in buckets, over a lazy manifest"""

import json
import os
import random
import tempfile
import time
from collections import deque
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

SECONDS = 42.0
BUFFER = 60_000
BUCKETS = 12
MAX_DURATION = 160.0


@dataclass
class Supervision:
    id: str
    start: float
    duration: float
    text: str
    speaker: str
    alignment: list


@dataclass
class Cut:
    id: str
    recording: str
    start: float
    duration: float
    supervisions: list


def write_manifest(path, cuts=30_000):
    """One line for each cut, as a prepared corpus has them"""
    picker = random.Random(4)
    words = ["so", "the", "house", "stood", "near", "a", "river", "and", "nobody", "lived", "there", "any", "more"]
    with open(path, "w") as manifest:
        for number in range(cuts):
            duration = min(20.0, picker.lognormvariate(1.6, 0.6))
            spoken = picker.choices(words, k=max(2, int(duration * 2.2)))
            marks = [[word, round(index * 0.45, 2), 0.4] for index, word in enumerate(spoken)]
            line = {
                "id": f"cut-{number}",
                "recording": f"rec-{number // 9}",
                "start": 0.0,
                "duration": round(duration, 3),
            }
            line["supervisions"] = [{"text": " ".join(spoken), "speaker": f"s{number % 700}", "alignment": marks}]
            manifest.write(json.dumps(line) + "\n")


def read_lazily(path):
    epoch = 0
    while True:
        with open(path) as manifest:
            for line in manifest:
                fields = json.loads(line)
                supervisions = [
                    Supervision(f"{fields['id']}-{epoch}", fields["start"], fields["duration"], **supervision)
                    for supervision in fields["supervisions"]
                ]
                yield Cut(fields["id"], fields["recording"], fields["start"], fields["duration"], supervisions)
        epoch += 1


class DynamicBucketing(Sampler):
    """Takes a batch from one of the buckets, and then as many cuts from the manifest as the batch had"""

    def __init__(self, path):
        self.cuts = read_lazily(path)
        self.picker = random.Random(1)
        self.buckets = [deque() for _ in range(BUCKETS)]
        self.held = 0

    def collect(self, count):
        for _ in range(count):
            cut = next(self.cuts)
            self.buckets[min(BUCKETS - 1, int(cut.duration * BUCKETS / 20))].append(cut)
        self.held += count

    def __iter__(self):
        self.collect(2000)
        started = time.monotonic()
        while time.monotonic() - started < SECONDS:
            bucket = self.picker.choice([bucket for bucket in self.buckets if bucket])
            batch, total = [], 0.0
            while bucket and total + bucket[0].duration < MAX_DURATION:
                batch.append(bucket.popleft())
                total += batch[-1].duration
            self.held -= len(batch)
            self.collect(min(BUFFER - self.held, len(batch) + 300))  # the buffer fills beside the first batches
            yield batch


class Features(Dataset):
    def __getitem__(self, cuts):
        frames = int(max(cut.duration for cut in cuts) * 25)
        features = torch.randn(len(cuts), frames, 40)
        tokens = torch.tensor([len(cut.supervisions[0].text) % 30 for cut in cuts])
        return features, tokens


def main():
    torch.set_num_threads(1)
    model = torch.nn.GRU(40, 96, batch_first=True)
    output = torch.nn.Linear(96, 30)
    optimizer = torch.optim.Adam([*model.parameters(), *output.parameters()], lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cuts.jsonl")
        write_manifest(path)
        sampler = DynamicBucketing(path)
        loader = DataLoader(Features(), sampler=sampler, batch_size=None, num_workers=1)
        for step, (features, tokens) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(output(model(features)[0][:, -1]), tokens)
            loss.backward()
            optimizer.step()
            if step % 25 == 0:
                print(f"step {step}: loss {loss.item():.3f}, {sampler.held} cuts in the buffer", flush=True)


if __name__ == "__main__":
    main()
