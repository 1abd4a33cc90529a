"""An agent that reads page after page for a question: one node reads, the other one decides; runs for its time"""

import asyncio
import os
import random
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

from pregel import AsyncPregelLoop
from saver import AsyncSaver

torch.set_num_threads(1)
SECONDS, STEP_S, WORDS = 26, 0.11, 190_000


class Reader(nn.Module):
    """Scores each word of a page for the question"""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8192, 32)
        self.layers = nn.Sequential(nn.Conv1d(32, 32, 5, padding=2), nn.GELU(), nn.Conv1d(32, 1, 5, padding=2))

    @torch.inference_mode()
    def forward(self, numbers):
        return self.layers(self.embedding(numbers).T[None])[0, 0]


class Browser:
    """Stands in for the web"""

    def __init__(self):
        self.numbers = random.Random(6)
        letters = "abcdefghijklmnoprstuvw"
        self.words = ["".join(self.numbers.choices(letters, k=self.numbers.randint(4, 10))) for _ in range(8192)]

    def read(self):
        picked = self.numbers.choices(range(len(self.words)), k=WORDS)
        return np.array(picked, np.uint16), " ".join([self.words[number] for number in picked])


class Agent:
    def __init__(self):
        self.model, self.browser = Reader().eval(), Browser()

    def tools(self, state):
        until = time.monotonic() + STEP_S
        numbers, page = self.browser.read()
        links = []
        while not links or time.monotonic() < until:
            links.append(page.count(self.browser.words[len(links)]))
        return {"page": page, "tokens": numbers, "links": max(links)}, "decide"

    def decide(self, state):
        until, first, scores = time.monotonic() + STEP_S, 0, np.zeros(WORDS, np.float64)
        while first == 0 or time.monotonic() < until:
            part = state["tokens"][first : first + 4000].astype(np.int64)
            scores[first : first + 4000] = self.model(torch.from_numpy(part)).numpy()
            first = (first + 4000) % WORDS
        message = f"page {len(state['messages'])}: {scores.max():.3f}, {state['links']} links"
        return {"scores": scores, "messages": [*state["messages"], message]}, "tools"


async def run():
    saver = await AsyncSaver.connect("checkpoints.socket")
    agent = Agent()
    nodes = {"tools": agent.tools, "decide": agent.decide}
    loop = AsyncPregelLoop(nodes, saver, {"configurable": {"thread_id": "1"}})
    state = await loop.run({"messages": []}, "tools", time.monotonic() + SECONDS)
    for message in state["messages"][::20]:
        print(message, flush=True)
    print(f"stopped after {loop.step + 1} steps", flush=True)


def main():
    torch.manual_seed(0)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "database.py")
    database = subprocess.Popen([sys.executable, script, "checkpoints.socket"], stdout=subprocess.PIPE)
    database.stdout.readline()
    asyncio.run(run())
    database.terminate()
    database.wait()


if __name__ == "__main__":
    main()
