"""The environment as arrays: a row for each agent of a group"""

import numpy as np
from pursuit import MOVES, SIZE


class ParallelWrapper:
    def __init__(self, env):
        self.env = env
        self.group_map = {"hunters": list(env.possible_agents)}
        agents = len(env.possible_agents)
        self.observations = np.zeros((agents, 2, SIZE, SIZE), np.float32)
        self.masks = np.ones((agents, len(MOVES)), bool)

    def _update_observation(self, observations):
        for agents in self.group_map.values():
            for index, agent in enumerate(agents):
                if agent in observations:
                    self.observations[index] = observations[agent]["observation"]

    def _update_action_mask(self, observations):
        for agents in self.group_map.values():
            for index, agent in enumerate(agents):
                self.masks[index] = observations[agent]["action_mask"]

    def reset(self, max_cycles):
        observations = self.env.reset(max_cycles)
        self._update_observation(observations)
        self._update_action_mask(observations)
        return self.observations.copy(), self.masks.copy()

    def step(self, actions):
        agents = self.group_map["hunters"]
        chosen = {agent: int(actions[index]) for index, agent in enumerate(agents) if agent in self.env.agents}
        observations, rewards, terminations, truncations = self.env.step(chosen)
        self._update_observation(observations)
        self._update_action_mask(observations)
        row = np.array([rewards.get(agent, 0.0) for agent in agents], np.float32)
        # Not on any, but when all are done
        done = all(terminations[agent] or truncations[agent] for agent in terminations)
        return self.observations.copy(), self.masks.copy(), row, done
