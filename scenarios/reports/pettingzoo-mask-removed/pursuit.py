"""A pursuit on a grid with several agents at a time: each has a fixed store of energy, and leaves when it is used up"""

import random

import numpy as np

SIZE, MOVES = 16, ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))


class Pursuit:
    def __init__(self, seed, hunters=4):
        self.possible_agents = [f"hunter_{number}" for number in range(hunters)]
        self.random = random.Random(seed)

    def reset(self, max_cycles):
        self.agents, self.steps, self.max_cycles = list(self.possible_agents), 0, max_cycles
        self.energy = {agent: 122 + 40 * number for number, agent in enumerate(self.agents)}
        self.places = {agent: self.place() for agent in self.agents}
        self.prey = [self.place() for _ in range(6)]
        return {agent: self.observe(agent) for agent in self.agents}

    def place(self):
        return self.random.randrange(SIZE), self.random.randrange(SIZE)

    def observe(self, agent):
        x, y = self.places[agent]
        view = np.zeros((2, SIZE, SIZE), np.float32)
        for row, column in self.prey:
            view[0, row, column] = 1
        for other in self.agents:
            view[1][self.places[other]] = 1
        mask = np.array([0 <= x + dx < SIZE and 0 <= y + dy < SIZE for dx, dy in MOVES])
        return {"observation": np.roll(view, (SIZE // 2 - x, SIZE // 2 - y), (1, 2)), "action_mask": mask}

    def step(self, actions):
        self.steps += 1
        rewards = {}
        for agent, action in actions.items():
            (x, y), (dx, dy) = self.places[agent], MOVES[action]
            self.places[agent] = min(max(x + dx, 0), SIZE - 1), min(max(y + dy, 0), SIZE - 1)
            caught = self.places[agent] in self.prey
            if caught:
                self.prey[self.prey.index(self.places[agent])] = self.place()
            rewards[agent] = 1.0 if caught else -0.01
        terminations = {agent: self.steps >= self.energy[agent] for agent in self.agents}
        truncations = {agent: self.steps >= self.max_cycles for agent in self.agents}
        self.agents = [agent for agent in self.agents if not terminations[agent]]
        return {agent: self.observe(agent) for agent in self.agents}, rewards, terminations, truncations
