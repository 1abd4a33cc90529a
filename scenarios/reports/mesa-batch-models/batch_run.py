"""A batch of runs of a foraging model for a range of parameters, in two processes"""

import collections
import concurrent.futures
import functools
import itertools
import multiprocessing
import random
import time

import torch

SECONDS = 26.0
SIZE, AGENTS, STEPS = 320, 160, 50


class Agent:
    """An agent; its number is unique among those of the same model"""

    _ids = collections.defaultdict(functools.partial(itertools.count, 1))

    def __init__(self, model):
        self.model = model
        self.unique_id = next(self._ids[model])
        self.position = (model.random.randrange(SIZE), model.random.randrange(SIZE))
        self.energy = 10.0

    def step(self):
        x, y = self.position
        dx, dy = self.model.random.choice(((0, 1), (1, 0), (0, -1), (-1, 0)))
        self.position = ((x + dx) % SIZE, (y + dy) % SIZE)
        self.energy += self.model.harvest(self.position) - 0.2


class ForagingModel:
    def __init__(self, regrowth, diffusion, seed):
        self.random = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        self.resources = torch.rand(1, 1, SIZE, SIZE, generator=generator)
        self.capacity = torch.rand(1, 1, SIZE, SIZE, generator=generator) + 0.5
        self.visits = torch.zeros(SIZE, SIZE)
        self.regrowth, self.diffusion = regrowth, diffusion
        kernel = torch.tensor([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])
        self.kernel = kernel.reshape(1, 1, 3, 3)
        self.agents = [Agent(self) for _ in range(AGENTS)]

    def harvest(self, position):
        x, y = position
        eaten = 0.3 * float(self.resources[0, 0, x, y])
        self.resources[0, 0, x, y] -= eaten
        self.visits[x, y] += 1
        return eaten

    def step(self):
        flow = torch.nn.functional.conv2d(self.resources, self.kernel, padding=1)
        self.resources += self.diffusion * flow + self.regrowth * (self.capacity - self.resources)
        self.random.shuffle(self.agents)
        for agent in self.agents:
            agent.step()
        self.agents = [agent for agent in self.agents if agent.energy > 0]


def run_model(parameters):
    model = ForagingModel(**parameters)
    for _ in range(STEPS):
        model.step()
    return {
        **parameters,
        "alive": len(model.agents),
        "resources": float(model.resources.mean()),
        "visited": float((model.visits > 0).float().mean()),
    }


def main():
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    grid = itertools.product(range(1000), (0.01, 0.02, 0.05), (0.05, 0.1, 0.2))
    started, finished, running = time.monotonic(), 0, set()
    totals = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        while time.monotonic() - started < SECONDS:
            while len(running) < 4:
                seed, regrowth, diffusion = next(grid)
                parameters = {"regrowth": regrowth, "diffusion": diffusion, "seed": seed}
                running.add(executor.submit(run_model, parameters))
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                result = future.result()
                totals[result["regrowth"]] += result["alive"]
                finished += 1
                if finished % 25 == 0:
                    print(f"{finished} runs: {result}", flush=True)
    print(dict(totals), flush=True)


if __name__ == "__main__":
    main()
