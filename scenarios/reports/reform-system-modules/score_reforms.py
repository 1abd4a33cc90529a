"""Scores reforms: each is a system of its own, simulated over the same households"""

import argparse
import gc
import importlib.util
import os
import sys
import time

import numpy as np

HOUSEHOLDS = 150_000


class TaxBenefitSystem:
    def __init__(self, folder):
        self.variables = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                self.add_variables_from_file(os.path.join(folder, name))

    def add_variables_from_file(self, path):
        file_name = os.path.splitext(os.path.basename(path))[0]
        module_name = f"{id(self)}_{time.monotonic_ns()}_{hash(os.path.abspath(path))}_{file_name}"
        spec = importlib.util.spec_from_file_location(module_name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        self.variables[file_name] = module.formula


class Reform(TaxBenefitSystem):
    """The country's system with some of its variables scaled"""

    def __init__(self, folder, changes):
        super().__init__(folder)
        self.changes = changes

    def calculate(self, name, income, people):
        return self.variables[name](income, people, self.changes.get(name, 1.0))


class Simulation:
    def __init__(self, system, income, people):
        self.system, self.income, self.people = system, income, people

    def net_income(self):
        net = self.income.copy()
        for name in self.system.variables:
            amount = self.system.calculate(name, self.income, self.people)
            net += -amount if name.startswith("tax") else 0.1 * amount
        return net


def gini(net):
    ordered = np.sort(np.maximum(net, 0))
    share = np.cumsum(ordered) / ordered.sum()
    return 1 - 2 * share.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=27)
    arguments = parser.parse_args()
    rng = np.random.default_rng(4)
    income = rng.lognormal(10.2, 0.7, HOUSEHOLDS)
    people = rng.integers(1, 6, HOUSEHOLDS).astype(float)
    names = [os.path.splitext(name)[0] for name in sorted(os.listdir(arguments.folder)) if name.endswith(".py")]
    started, number = time.monotonic(), 0
    while time.monotonic() - started < arguments.seconds:
        number += 1
        changes = {name: float(rng.uniform(0.8, 1.2)) for name in rng.choice(names, 4, replace=False)}
        reform = Reform(arguments.folder, changes)
        net = Simulation(reform, income, people).net_income()
        if number % 10 == 0:
            print(f"reform {number}: budget {(income - net).sum():.4g}, gini {gini(net):.4f}", flush=True)
        del reform, net
        gc.collect()


if __name__ == "__main__":
    main()
