"""Measures the engine's throughput for each setting"""

import gc
import itertools
import time

import torch
from llm import VOCABULARY, LLM

SECONDS_EACH, REPEATS = 0.8, 4


def measure(settings, prompts):
    llm = LLM(**settings)
    begin, made = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS_EACH:
        batch = prompts[: settings["max_num_seqs"]]
        made += llm.generate(batch, max_tokens=8).numel() - batch.numel()
    return made / (time.perf_counter() - begin)


def main():
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(0, VOCABULARY, (6, 12), generator=generator)
    grid = list(itertools.product([8, 16, 32], [4, 5, 6]))
    for repeat, (block_size, max_num_seqs) in itertools.product(range(REPEATS), grid):
        settings = {"block_size": block_size, "max_num_seqs": max_num_seqs}
        rate = measure(settings, prompts)
        gc.collect()
        print(f"repeat {repeat}: {settings}: {rate:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
