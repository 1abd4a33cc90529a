"""The orchestrator's buffer of problems and rollouts"""

import json
import random


class Buffer:
    def __init__(self, problems, seed=0):
        self.random = random.Random(seed)
        self.pools = {"easy": [], "normal": list(problems), "hard": []}
        self.rollout_history = []

    def sample_problems(self, count):
        source = self.pools["normal"] + self.pools["hard"]
        return [self.random.choice(source) for _ in range(count)]

    def update(self, rollouts):
        """Takes the rollouts of a step, and sorts their problems by how often they were solved."""
        by_problem = {}
        for rollout in rollouts:
            by_problem.setdefault(rollout["problem"], []).append(rollout["reward"])
            self.rollout_history.append(rollout)
        for problem, rewards in by_problem.items():
            for pool in self.pools.values():
                if problem in pool:
                    pool.remove(problem)
            mean = sum(rewards) / len(rewards)
            self.pools["easy" if mean > 0.98 else "hard" if mean < 0.02 else "normal"].append(problem)

    def replay(self, count):
        """Rollouts of earlier steps, to mix into a batch."""
        return self.random.choices(self.rollout_history, k=count) if self.rollout_history else []

    def save(self, path):
        with open(path, "w") as file:
            for rollout in self.rollout_history:
                file.write(json.dumps(rollout) + "\n")
