"""Trains a text encoder on pairs of texts with negatives from the batch, on all ranks of a node"""

import argparse
import time

import numpy as np
import torch
import torch.distributed as dist
from sampler import BatchSamplerShard, DefaultBatchSampler, ProportionalBatchSampler
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

TOKENS, WORDS, LENGTH, BATCH, STEP_S = 4_000_000, 20_000, 32, 32, 0.1
CONFIGS = {
    "check": {"squad": 90_000},
    "unsupervised": {
        "reddit": 5_100_000,
        "paq": 3_400_000,
        "amazon_reviews": 2_500_000,
        "s2orc_titles": 1_900_000,
        "wikipedia": 700_000,
    },
}


class Pairs(Dataset):
    """Pairs of passages of a corpus that is mapped from disk"""

    def __init__(self, corpus, pairs, seed):
        self.corpus, self.pairs, self.seed = corpus, pairs, seed

    def __len__(self):
        return self.pairs

    def __getitem__(self, index):
        place = (index * 2_654_435_761 + self.seed) % (TOKENS - 3 * LENGTH)
        passage = self.corpus[place : place + 2 * LENGTH].astype(np.int64)
        return torch.from_numpy(passage[:LENGTH]), torch.from_numpy(passage[LENGTH // 2 : LENGTH // 2 + LENGTH])


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.Sequential(nn.Linear(width, 256), nn.GELU(), nn.Linear(256, width))

    def forward(self, tokens):
        return nn.functional.normalize(self.layers(self.words(tokens)).mean(1), dim=1)


def build_corpus(path):
    numbers = np.random.default_rng(0)
    (numbers.zipf(1.3, TOKENS) % WORDS).astype(np.uint16).tofile(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    parser.add_argument("--corpus")
    parser.add_argument("--seconds", type=float)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    if rank == 0 and args.config == "check":
        build_corpus(args.corpus)
    dist.barrier()
    corpus = np.memmap(args.corpus, np.uint16, mode="r")

    sets = [Pairs(corpus, pairs, seed) for seed, pairs in enumerate(CONFIGS[args.config].values())]
    dataset = ConcatDataset(sets)
    samplers = [DefaultBatchSampler(one, BATCH, True, torch.Generator(), 42) for one in sets]
    sampler = ProportionalBatchSampler(dataset, samplers, torch.Generator(), 42)
    loader = DataLoader(dataset, batch_sampler=BatchSamplerShard(sampler, rank, world))
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    over, begin = torch.zeros(1), time.monotonic()
    for step, (queries, documents) in enumerate(loader, 1):
        until = time.monotonic() + STEP_S
        scores = 20 * model(queries) @ model(documents).t()
        loss = nn.functional.cross_entropy(scores, torch.arange(len(scores)))
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        # The rest of the time is for the spread of the embeddings
        with torch.no_grad():
            while time.monotonic() < until:
                torch.pdist(model(documents)).mean()
        over[0] = time.monotonic() - begin > args.seconds
        dist.all_reduce(over)
        if rank == 0 and step % 25 == 0:
            print(f"{args.config} step {step} of {len(loader)}: loss {loss.item():.3f}", flush=True)
        if over > 0:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
