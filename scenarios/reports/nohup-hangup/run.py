"""Fine-tunes a text embedding model, with the passages of all ranks as negatives"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
VOCABULARY, WIDTH, PAIRS, BATCH = 16_000, 192, 4096, 16
LONGEST_S = 150.0


class BiEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 512, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def encode(self, ids):
        return functional.normalize(self.encoder(self.embedding(ids)).mean(1), dim=-1)

    def forward(self, queries, passages):
        return self.encode(queries), self.encode(passages)


class PairDataset:
    """Queries, and passages that hold the words of their query among others"""

    def __init__(self, rank, query_length, passage_length):
        self.generator = torch.Generator().manual_seed(rank)
        self.queries = torch.randint(VOCABULARY, (PAIRS, query_length), generator=self.generator)
        others = torch.randint(VOCABULARY, (PAIRS, passage_length - query_length), generator=self.generator)
        self.passages = torch.cat([self.queries, others], dim=1)

    def batch(self):
        chosen = torch.randint(PAIRS, (BATCH,), generator=self.generator)
        return self.queries[chosen], self.passages[chosen]


def across_devices(passages):
    parts = [torch.empty_like(passages) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, passages.detach().contiguous())
    parts[dist.get_rank()] = passages
    return torch.cat(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--query-max-len", type=int, default=32)
    parser.add_argument("--passage-max-len", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.05)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(BiEncoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    dataset = PairDataset(rank, arguments.query_max_len, arguments.passage_max_len)
    target = torch.arange(BATCH) + rank * BATCH
    began, step = time.monotonic(), 0
    while time.monotonic() - began < LONGEST_S:
        queries, passages = model(*dataset.batch())
        loss = functional.cross_entropy(queries @ across_devices(passages).T / arguments.temperature, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % 5 == 0:
            print({"loss": round(loss.item(), 4), "step": step}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
