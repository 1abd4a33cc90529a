"""Batches for a small GPT come from one np.memmap that is opened once; its pages become resident as they are read."""

import os
import tempfile
import time

import numpy as np
import torch
from torch.nn import functional as F

SECONDS = 32.0
BLOCK_SIZE, BATCH_SIZE, VOCAB = 64, 12, 512
TOKENS = 400_000_000


def prepare(path):
    piece = np.random.default_rng(0).integers(0, VOCAB, 8_000_000).astype(np.uint16)
    with open(path, "wb") as f:
        for n in range(TOKENS // len(piece)):
            f.write(np.roll(piece, n).tobytes())


class Block(torch.nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(n_embd), torch.nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = torch.nn.Linear(n_embd, 3 * n_embd), torch.nn.Linear(n_embd, n_embd)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(n_embd, 4 * n_embd), torch.nn.GELU(), torch.nn.Linear(4 * n_embd, n_embd)
        )
        self.n_head = n_head

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.n_head, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class GPT(torch.nn.Module):
    def __init__(self, n_embd=128):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(VOCAB, n_embd), torch.nn.Embedding(BLOCK_SIZE, n_embd)
        self.h = torch.nn.Sequential(*(Block(n_embd, 4) for _ in range(3)))
        self.lm_head = torch.nn.Linear(n_embd, VOCAB)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        return F.cross_entropy(self.lm_head(self.h(x)).flatten(0, 1), targets.flatten())


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as data_dir:
        prepare(os.path.join(data_dir, "train.bin"))
        train_data = np.memmap(os.path.join(data_dir, "train.bin"), dtype=np.uint16, mode="r")

        def get_batch():
            ix = torch.randint(len(train_data) - BLOCK_SIZE - 1, (BATCH_SIZE,))
            x = torch.stack([torch.from_numpy(train_data[i : i + BLOCK_SIZE].astype(np.int64)) for i in ix])
            y = torch.stack([torch.from_numpy(train_data[i + 1 : i + 1 + BLOCK_SIZE].astype(np.int64)) for i in ix])
            return x, y

        model = GPT()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        end, iter_num = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            X, Y = get_batch()
            loss = model(X, Y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if iter_num % 100 == 0:
                print(f"iter {iter_num}: loss {loss.item():.4f}", flush=True)
            iter_num += 1


if __name__ == "__main__":
    main()
