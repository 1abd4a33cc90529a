"""A stress run of the reranker: asks it for half a minute, and counts what the collector would have to look at"""

import asyncio
import gc
import random
import time

import torch

from reranker import LocalReranker

torch.set_num_threads(1)
SECONDS, PASSAGES, QUERY, LONGEST = 32.0, 16, 24, 480


def passages_of(numbers, longest):
    lengths = [numbers.randint(longest // 2, longest) for _ in range(PASSAGES)]
    return [[numbers.randrange(1, 30_000) for _ in range(length)] for length in lengths]


async def main():
    torch.manual_seed(0)
    gc.disable()
    reranker, numbers = LocalReranker(), random.Random(6)
    start, round_number, best = time.monotonic(), 0, 0.0
    while (passed := (time.monotonic() - start) / SECONDS) < 1:
        longest = int(60 + (LONGEST - 60) * min(1.0, 2 * passed))
        query = [numbers.randrange(1, 30_000) for _ in range(QUERY)]
        scores = await reranker.predict(query, passages_of(numbers, longest))
        best += max(scores)
        round_number += 1
        if round_number % 20 == 0:
            print(f"round {round_number}: longest {longest}, {len(gc.get_objects())} tracked objects", flush=True)
    reranker.executor.shutdown()
    print(f"{round_number} rounds, mean best {best / round_number:.3f}, collected {gc.collect()}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
