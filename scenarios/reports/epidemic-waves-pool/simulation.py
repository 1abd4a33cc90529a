"""A small epidemic on a contact network: people, network and disease are modules of a simulation"""

import numpy as np


class Table:
    """Named columns of equal length"""

    def __init__(self, rows):
        self.columns = {name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]}

    def rows(self):
        for values in zip(*self.columns.values()):
            yield dict(zip(self.columns, values))

    def __len__(self):
        return len(next(iter(self.columns.values())))


class Module:
    def __init__(self, sim):
        self.sim = sim

    def start_step(self):
        pass

    def step(self):
        pass

    def finish_step(self):
        pass


class People(Module):
    def __init__(self, sim):
        super().__init__(sim)
        count = sim.parameters["people"]
        self.age = sim.random.gamma(4.0, 9.0, count)
        self.state = np.zeros(count, np.int8)
        self.infected_at = np.full(count, np.inf)
        self.state[sim.random.choice(count, 40, replace=False)] = 1
        self.infected_at[self.state == 1] = 0

    def step(self):
        self.age += 1 / 365


class Network(Module):
    def __init__(self, sim):
        super().__init__(sim)
        count, edges = sim.parameters["people"], sim.parameters["edges"]
        self.first = sim.random.integers(0, count, edges, dtype=np.int32)
        self.second = sim.random.integers(0, count, edges, dtype=np.int32)
        self.weight = sim.random.gamma(2.0, 0.5, edges).astype(np.float32)

    def step(self):
        changed = self.sim.random.integers(0, len(self.second), len(self.second) // 50)
        self.second[changed] = self.sim.random.integers(0, self.sim.parameters["people"], len(changed), dtype=np.int32)


class Disease(Module):
    def step(self):
        people, network, now = self.sim.people, self.sim.network, self.sim.now
        for source, target in ((network.first, network.second), (network.second, network.first)):
            open_edges = np.flatnonzero((people.state[source] == 1) & (people.state[target] == 0))
            chance = 1 - np.exp(-self.sim.parameters["beta"] * network.weight[open_edges])
            caught = np.unique(target[open_edges[self.sim.random.random(len(open_edges)) < chance]])
            people.state[caught], people.infected_at[caught] = 1, now
        cured = (people.state == 1) & (now - people.infected_at > self.sim.parameters["duration"])
        people.state[cured] = 2

    def finish_step(self):
        self.sim.curve[self.sim.now] = np.count_nonzero(self.sim.people.state == 1)


class Loop:
    """The plan of the run: what is called in which order, for all steps"""

    def __init__(self, sim):
        rows = [
            {"step": step, "label": f"{type(module).__name__}.{phase}", "call": getattr(module, phase)}
            for step in range(sim.parameters["steps"])
            for phase in ("start_step", "step", "finish_step")
            for module in (sim.people, sim.network, sim.disease)
        ]
        self.plan = Table(rows)

    def run(self, sim):
        for row in self.plan.rows():
            sim.now = row["step"]
            row["call"]()


class Sim:
    def __init__(self, parameters, seed):
        self.parameters, self.random, self.now = parameters, np.random.default_rng(seed), 0
        self.curve = np.zeros(parameters["steps"], np.int64)
        self.people, self.network, self.disease = People(self), Network(self), Disease(self)
        self.loop = Loop(self)

    def run(self):
        self.loop.run(self)
        return self
