"""The engine core: prefills prompts, offloads their keys and values, and decodes"""

import argparse
import os
import sys
import time

import torch
from torch import nn

from offload import OffloadManager, SharedOffloadRegion

LAYERS, WIDTH, HEADS, PROMPT, VOCABULARY = 6, 256, 4, 64, 4000
STEP_S, CRASH_S, SERVE_S = 0.05, 15.0, 40.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(LAYERS)
        )

    def split(self, x):
        return x.view(len(x), HEADS, -1).transpose(0, 1)

    def prefill(self, tokens):
        """The keys and values of a prompt, for each layer"""
        x, cache = self.embedding(tokens), []
        for qkv, mlp in zip(self.qkv, self.mlp):
            q, k, v = qkv(x).chunk(3, -1)
            cache.append(torch.stack([k, v]))
            attended = nn.functional.scaled_dot_product_attention(*map(self.split, (q, k, v)), is_causal=True)
            x = x + attended.transpose(0, 1).reshape(len(x), WIDTH)
            x = x + mlp(x)
        return torch.stack(cache)

    def decode(self, cache, token):
        x = self.embedding(token.view(1))
        for (k, v), qkv, mlp in zip(cache, self.qkv, self.mlp):
            q = qkv(x).chunk(3, -1)[0]
            x = x + nn.functional.scaled_dot_product_attention(*map(self.split, (q, k, v))).reshape(1, WIDTH)
            x = x + mlp(x)
        return (x @ self.embedding.weight.T).argmax()


class EngineCore:
    def __init__(self, cpu_bytes_to_use):
        torch.manual_seed(0)
        self.model = Model()
        self.region = SharedOffloadRegion(cpu_bytes_to_use)
        self.offload = OffloadManager(self.region, (LAYERS, 2, PROMPT, WIDTH))

    @torch.inference_mode()
    def step(self, prompt, seconds):
        """Tokens for a prompt, as many as there is time for"""
        until, tokens = time.monotonic() + seconds, 0
        generator = torch.Generator().manual_seed(prompt)
        cache = self.offload.load(prompt)
        if cache is None:
            cache = self.model.prefill(torch.randint(0, VOCABULARY, (PROMPT,), generator=generator))
            self.offload.store(prompt, cache)
        token = torch.tensor(prompt % VOCABULARY)
        while tokens == 0 or time.monotonic() < until:
            token = self.model.decode(cache, token)
            tokens += 1
        return tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", type=int, required=True)
    parser.add_argument("--cpu-bytes-to-use", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    engine = EngineCore(options.cpu_bytes_to_use)
    chooser = torch.Generator().manual_seed(options.start)
    started, steps, tokens = time.monotonic(), 0, 0
    while time.monotonic() - started < SERVE_S:
        prompt = int(torch.randint(0, 600, (), generator=chooser))
        tokens += engine.step(prompt, STEP_S)
        steps += 1
        if steps % 50 == 0:
            print(f"{steps} steps, {tokens} tokens", flush=True)
        if options.start == 1 and time.monotonic() - started > CRASH_S:
            print("device-side assert triggered: block index out of range", file=sys.stderr, flush=True)
            os.abort()
    engine.offload = None
    engine.region.cleanup()


if __name__ == "__main__":
    main()
