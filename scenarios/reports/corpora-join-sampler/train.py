"""Frame-level phone classification on several corpora, which join the training one after the other"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, RandomSampler, Sampler

CORPORA, STEPS, CODES = 14, 1_600_000, 3
CONTEXT, BATCH = 20, 128
STAGE_S, LAST_S = 2.4, 36.0


class Corpus(Dataset):
    """Quantised features of all utterances, one after the other, at 100 steps a second"""

    def __init__(self, seed):
        generator = np.random.default_rng(seed)
        self.codes = generator.integers(0, 200, (STEPS, CODES), dtype=np.uint8)

    def __len__(self):
        return STEPS

    def __getitem__(self, step):
        start = min(max(step - CONTEXT, 0), STEPS - 2 * CONTEXT - 1)
        window = self.codes[start : start + 2 * CONTEXT + 1]
        return torch.from_numpy(window.astype(np.int64)), int(window[CONTEXT, 0]) % 40


class JoiningBatchSampler(Sampler):
    """Batches of steps of all corpora that take part"""

    def __init__(self, corpora, batch_size):
        self.offsets = np.cumsum([0, *(len(corpus) for corpus in corpora)])[:-1].tolist()
        self.samplers = [RandomSampler(corpus) for corpus in corpora]
        self.batch_size = batch_size
        self.active = 1

    def join(self, active):
        self.active = min(max(active, self.active), len(self.samplers))

    def __iter__(self):
        steps = {}
        while True:
            batch = []
            while len(batch) < self.batch_size:
                for number in range(self.active):
                    if number not in steps:
                        steps[number] = iter(self.samplers[number])
                    step = next(steps[number], None)
                    if step is None:
                        return
                    batch.append(self.offsets[number] + step)
            yield batch[: self.batch_size]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(200, 32)
        self.layers = nn.Sequential(
            nn.Conv1d(32 * CODES, 128, 5), nn.ReLU(), nn.Conv1d(128, 128, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 40),
        )  # fmt: skip

    def forward(self, codes):
        return self.layers(self.embedding(codes).flatten(2).transpose(1, 2))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    corpora = [Corpus(seed) for seed in range(CORPORA)]
    sampler = JoiningBatchSampler(corpora, BATCH)
    loader = DataLoader(ConcatDataset(corpora), batch_sampler=sampler)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    started = time.monotonic()
    for number, (codes, phones) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(codes), phones)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        passed = time.monotonic() - started
        sampler.join(1 + int(passed / STAGE_S))
        if number % 100 == 0:
            print(f"batch {number}: {sampler.active} corpora, loss {loss.item():.3f}", flush=True)
        if passed > LAST_S:
            break


if __name__ == "__main__":
    main()
