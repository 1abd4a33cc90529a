"""Checks that an update of the weights brings what was there before: snapshot, reset, compare"""

import numpy as np


class WeightChecker:
    def __init__(self, model):
        self.model = model
        self.snapshot_tensors = None

    def handle(self, action):
        {"snapshot": self.snapshot, "reset": self.reset, "compare": self.compare}[action]()

    def snapshot(self):
        self.snapshot_tensors = {name: tensor.copy() for name, tensor in self.model.items()}

    def reset(self):
        for tensor in self.model.values():
            tensor.fill(np.nan)

    def compare(self):
        for name, expected in self.snapshot_tensors.items():
            if not np.array_equal(expected, self.model[name]):
                raise ValueError(f"{name} differs after the update")
