"""Trains a recurrent detector of sound events with embeddings"""

import time

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader

from datasets import ClipSet, ConcatDatasetBatchSampler, Embeddings

torch.set_num_threads(1)
BATCH_S = 0.12


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Sequential(nn.Conv1d(1, 32, 800, 400), nn.ReLU(), nn.AdaptiveAvgPool1d(40))
        self.recurrent = nn.GRU(32 + 256, 64, batch_first=True, bidirectional=True)
        self.head = nn.Linear(128, 10)

    def forward(self, audio, embeddings):
        features = torch.cat([self.frames(audio[:, None]), embeddings], 1)
        outputs, _ = self.recurrent(features.transpose(1, 2))
        return self.head(outputs).mean(1)


def clip_names():
    places = ["home", "street_traffic", "park", "metro_station"]
    labelled = [f"synthetic-{number:04d}" for number in range(1000)]
    unlabelled = []
    for place in places:
        for number in range(250):
            start = number * 1000 % 9000 + 300
            unlabelled.append(f"{place}_{number // 9:02d}-{start:06d}-{start + 1000:06d}")
    return labelled, unlabelled


def main():
    torch.manual_seed(0)
    labelled, unlabelled = clip_names()
    extracted = [name for name in unlabelled if not name.startswith("metro_station_07-007")]
    embeddings = Embeddings(labelled + extracted)
    sets = [ClipSet(labelled, embeddings, True), ClipSet(unlabelled, embeddings, False)]
    sampler = ConcatDatasetBatchSampler([len(one) for one in sets], [6, 6])
    loader = DataLoader(ConcatDataset(sets), batch_sampler=sampler, num_workers=2)
    student = CRNN()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for step, (audio, target, embedding, has_labels) in enumerate(loader):
        until = time.monotonic() + BATCH_S
        while time.monotonic() < until:
            scores = student(audio, embedding)
            losses = nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="none").mean(1)
            loss = (losses * has_labels).sum() / has_labels.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 20 == 0:
            print(f"step {step} of {len(loader)}: loss {loss.item():.4f}", flush=True)
    print("epoch over", flush=True)


if __name__ == "__main__":
    main()
