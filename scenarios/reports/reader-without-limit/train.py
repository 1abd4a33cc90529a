"""Trains a paraphraser on the GPU, which it shares with others"""

import time

import torch
from torch import nn

from reader import Seq2SeqReader

VOCABULARY, SIZE, BATCH = 10_000, 256, 64
SECONDS = 40.0


class SimpleSeq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedder = nn.Embedding(VOCABULARY, SIZE)
        self.encoder = nn.GRU(SIZE, SIZE, batch_first=True)
        self.decoder = nn.GRU(SIZE, SIZE, batch_first=True)
        self.output_projection = nn.Linear(SIZE, VOCABULARY)

    def forward(self, source, target):
        _, state = self.encoder(self.embedder(source))
        inputs = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)
        hidden, _ = self.decoder(self.embedder(inputs), state)
        logits = self.output_projection(hidden)
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.cuda.set_per_process_memory_fraction(0.03)
    model = SimpleSeq2Seq().cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    started, step = time.monotonic(), 0
    for source, target in Seq2SeqReader(VOCABULARY, BATCH):
        loss = model(source.cuda(), target.cuda())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            used = torch.cuda.max_memory_allocated() / 2**20
            print(f"step {step}: loss {loss.item():.4f}, {used:.0f} MiB of the GPU", flush=True)
        if time.monotonic() - started > SECONDS:
            break


if __name__ == "__main__":
    main()
