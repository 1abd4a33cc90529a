"""nanoGPT's loop on two ranks: get_batch() reads random blocks of a token file through np.memmap; all of it becomes resident."""

import os
import shutil
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

block_size, batch_size, vocab_size, n_embd = 256, 24, 8192, 96
TOKENS = 180_000_000


def prepare(data_dir):
    rng = np.random.default_rng(0)
    piece = rng.integers(0, vocab_size, 2_000_000, dtype=np.uint16)
    with open(os.path.join(data_dir, "train.bin"), "wb") as f:
        for n in range(TOKENS // len(piece)):
            f.write(np.roll(piece, n).tobytes())


def get_batch(data):
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([torch.from_numpy((data[i : i + block_size]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + block_size]).astype(np.int64)) for i in ix])
    return x, y


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = torch.nn.Linear(n_embd, 3 * n_embd)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(n_embd, 4 * n_embd), torch.nn.GELU(), torch.nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        q, k, v = (part.unsqueeze(1) for part in self.c_attn(x).split(n_embd, dim=2))
        x = x + torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(1)
        return x + self.mlp(x)


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(vocab_size, n_embd)
        self.h = torch.nn.Sequential(Block())
        self.out = torch.nn.Linear(n_embd, 64)

    def forward(self, idx, targets):
        logits = self.out(self.h(self.wte(idx)))
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), (targets % 64).flatten())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    names = [tempfile.mkdtemp(prefix="nanogpt_") if rank == 0 else None]
    dist.broadcast_object_list(names)
    data_dir = names[0]
    if rank == 0:
        prepare(data_dir)
    dist.barrier()
    data = np.memmap(os.path.join(data_dir, "train.bin"), dtype=np.uint16, mode="r")
    torch.manual_seed(1337 + rank)
    model = DDP(GPT())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    X, Y = get_batch(data)
    for iter_num in range(125):
        loss = model(X, Y)
        X, Y = get_batch(data)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if iter_num % 20 == 0 and rank == 0:
            print(f"iter {iter_num}: loss {loss.item():.4f}", flush=True)
    del data
    dist.barrier()
    if rank == 0:
        shutil.rmtree(data_dir)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
