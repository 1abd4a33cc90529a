"""A software factory: in each cycle a researcher and a builder work at an experiment, and the CEO keeps or drops it"""

import asyncio
import collections
import random
import tempfile
import time

import torch
from runner import run_agent

torch.set_num_threads(1)
CYCLES, CYCLE_S, FILES, WIDTH = 12, 3.9, 150_000, 192
DUTIES = ("read the scores", "compare with the best", "look at the difference", "ask for tests", "keep or drop")


class Judge:
    """Scores an experiment by how near its files are to those of the repository"""

    def __init__(self):
        torch.manual_seed(0)
        self.files = torch.nn.functional.normalize(torch.randn(FILES, WIDTH), dim=1)

    @torch.inference_mode()
    def score(self, text, until):
        source, best = torch.Generator().manual_seed(len(text)), 0.0
        while time.monotonic() < until:
            query = torch.nn.functional.normalize(torch.randn(WIDTH, generator=source), dim=0)
            best = max(best, (self.files @ query).max().item())
        return best


class Factory:
    def __init__(self, folder):
        self.folder, self.judge, self.source = folder, Judge(), random.Random(6)
        self.events, self.history = collections.deque(maxlen=50), []

    def instructions(self):
        lines = [f"{number}. {self.source.choice(DUTIES)} of part {number}" for number in range(600)]
        return "# The CEO's duties\n\n" + "\n".join(lines)

    async def run(self, name, prompt):
        return await run_agent(name, prompt, self.folder, self.events.append)

    async def cycle(self, number, end):
        plan = await self.run("researcher", f"Find hypothesis {number}")
        work = await self.run("builder", f"Build what follows from it:\n{plan}")
        score = await asyncio.to_thread(self.judge.score, work, end - 1.2)
        self.history.append(f"## Experiment {number}, score {score:.4f}\n\n{plan}\n\n{work[:2000]}\n")
        await self.run("ceo", self.instructions() + "\n\n" + "\n".join(self.history))
        await asyncio.to_thread(self.judge.score, plan, end)
        print(f"cycle {number}: score {score:.4f}, {len(self.events)} events", flush=True)


async def main():
    with tempfile.TemporaryDirectory() as folder:
        factory, begin = Factory(folder), time.monotonic()
        for number in range(1, CYCLES + 1):
            await factory.cycle(number, begin + number * CYCLE_S)


if __name__ == "__main__":
    asyncio.run(main())
