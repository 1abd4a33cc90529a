"""Trains a language model, and saves it every few seconds; a saved checkpoint is checked and compressed for the upload."""

import collections
import hashlib
import os
import tempfile
import time
import zlib

import torch
from checkpoint import Checkpointer
from torch import nn

VOCABULARY, WIDTH, LENGTH = 8000, 512, 32
SECONDS, SAVE_EVERY = 26, 4.0


class CheckpointerCallback:
    """Starts a save when it is time, and finishes the one before; keeps the last checkpoints on the disk."""

    def __init__(self, checkpointer, keep=2):
        self.checkpointer = checkpointer
        self.kept, self.keep = collections.deque(), keep
        self.future, self.following = None, time.monotonic() + SAVE_EVERY

    def post_step(self, step, model, optimizer):
        if time.monotonic() < self.following:
            return
        self.await_last()
        self.future = self.checkpointer.save_async(step, model, optimizer)
        self.future.add_done_callback(self.upload)
        self.following += SAVE_EVERY

    def upload(self, future):
        path = future.result()
        digest, size = hashlib.sha256(), 0
        compressor = zlib.compressobj(1)
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(compressor.compress(block))
        size += len(compressor.flush())
        print(f"{os.path.basename(path)}: {digest.hexdigest()[:12]}, {size >> 20} MiB to upload", flush=True)
        self.kept.append(path)
        while len(self.kept) > self.keep:
            os.remove(self.kept.popleft())

    def await_last(self):
        if self.future is not None:
            self.future.result()
            self.future = None


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        return self.norm(self.recurrent(self.embed(tokens))[0]) @ self.embed.weight.T / WIDTH**0.5


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = Checkpointer(folder)
        callback = CheckpointerCallback(checkpointer)
        end, step = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            start = torch.randint(VOCABULARY, (4, 1))
            tokens = (start + 7 * torch.arange(LENGTH + 1)) % VOCABULARY
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            callback.post_step(step, model, optimizer)
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
        callback.await_last()
        checkpointer.close()


if __name__ == "__main__":
    main()
