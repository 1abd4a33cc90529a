"""Evaluates an agent: in each repository it shall find where a name is defined"""

import asyncio
import os
import random
import time

import torch
from tools import GrepTool
from torch import nn

REPOSITORIES, FILES, NAMES, STEP_S, STEPS = 12, 60, 40, 0.9, 2
PACKAGES, LINKS = 40, 90


def make_repository(number):
    """The folder of a repository, and the name to find in it"""
    rng, root = random.Random(number), os.path.join("repositories", f"repository-{number:02d}")
    names = [f"handle_{rng.randrange(10**6):06d}" for _ in range(NAMES)]
    os.makedirs(os.path.join(root, "src"))
    for position in range(FILES):
        with open(os.path.join(root, "src", f"module_{position:02d}.py"), "w") as file:
            if position < NAMES:
                file.write(f"def {names[position]}(request):\n    return request\n\n\n")
            for _ in range(300):
                file.write(f"value = {rng.choice(names)}({rng.random()})\n")
    if number == 7:
        # Installed on another machine, whose package store the links point into.
        for package in range(PACKAGES):
            folder = os.path.join(root, "node_modules", f".pnpm-package-{package:02d}", "node_modules")
            os.makedirs(folder)
            for link in range(LINKS):
                os.symlink(f"/srv/ci/.pnpm-store/v3/{package}/{link}", os.path.join(folder, f"dependency-{link:02d}"))
    return root, names[rng.randrange(NAMES)]


class Agent:
    """Thinks with a small recurrent model, and asks for a search by a pattern"""

    def __init__(self):
        torch.manual_seed(0)
        self.embedding, self.cell, self.head = nn.Embedding(256, 256), nn.GRU(256, 512), nn.Linear(512, 256)

    @torch.inference_mode()
    def think(self, text):
        until, state = time.monotonic() + STEP_S, None
        tokens = torch.tensor(list(text.encode()[-512:]))
        while True:
            hidden, state = self.cell(self.embedding(tokens)[:, None], state)
            tokens = self.head(hidden[-16:, 0]).argmax(-1)
            if time.monotonic() > until:
                return tokens.tolist()

    def pattern(self, name, step):
        return [rf"\b{name}\b", rf"def {name}\("][step]


async def attempt(agent, tool, root, name):
    seen = f"Where is {name} defined in {root}?"
    for step in range(STEPS):
        await asyncio.get_running_loop().run_in_executor(None, agent.think, seen)
        matches = await tool.execute(agent.pattern(name, step), root)
        seen += "\n".join(matches)
    return len(matches) == 1 and matches[0].split(":")[1] == "1"


async def evaluate(tasks):
    agent, tool, solved = Agent(), GrepTool(), 0
    for number, (root, name) in enumerate(tasks):
        solved += await attempt(agent, tool, root, name)
        print(f"repository {number}: {solved} of {number + 1} solved", flush=True)


def main():
    torch.set_num_threads(1)
    asyncio.run(evaluate([make_repository(number) for number in range(REPOSITORIES)]))


if __name__ == "__main__":
    main()
