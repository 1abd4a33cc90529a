"""Plays four games at once: an agent for each, whose snippets run in a sandbox process beside the host"""

import asyncio
import concurrent.futures
import random
import time

import numpy as np
from bridge import decoded_namespace, file_content, packed_inputs, request_body
from sandbox import Sandbox

SECONDS, GAMES, LARGEST = 27.0, 4, 12 << 20
FRAMES = np.frombuffer(random.Random(3).randbytes(LARGEST), np.uint8)


class Game:
    """One game: its sandbox, and a thread each for its file bridge, its tool loop and its model client"""

    def __init__(self, number):
        self.number, self.source, self.steps = number, random.Random(number), 0
        self.sandbox = Sandbox()
        self.bridge, self.tools, self.client = (
            concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=f"game{number}-{role}")
            for role in ("bridge", "tools", "client")
        )

    async def step(self, progress):
        loop = asyncio.get_running_loop()
        # A later snippet sees more frames of the game, not always all of them
        size = int(LARGEST * (0.06 + 0.94 * progress) * self.source.uniform(0.75, 1))
        inputs = await asyncio.to_thread(packed_inputs, FRAMES[:size], self.steps)
        snippet = await loop.run_in_executor(self.client, request_body, inputs)
        head = await loop.run_in_executor(self.bridge, file_content, inputs)
        result = await self.sandbox.run(snippet, head)
        score = await loop.run_in_executor(self.tools, decoded_namespace, inputs, result)
        self.steps += 1
        return score

    async def play(self, begin):
        await self.sandbox.start()
        score = 0.0
        while (elapsed := time.monotonic() - begin) < SECONDS:
            score = await self.step(elapsed / SECONDS)
            if self.steps % 20 == 0:
                print(f"game {self.number}: step {self.steps}, score {score:.2f}", flush=True)
        await self.sandbox.stop()
        for executor in (self.bridge, self.tools, self.client):
            executor.shutdown()
        return self.steps


async def main():
    begin = time.monotonic()
    steps = await asyncio.gather(*[Game(number).play(begin) for number in range(GAMES)])
    print(f"{sum(steps)} steps in {GAMES} games", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
