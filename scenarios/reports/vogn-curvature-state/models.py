"""A perceptron that also hands out what the optimizer needs of each layer"""

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(before, after) for before, after in zip(sizes, sizes[1:]))

    def forward(self, x):
        """The output, and of each layer its input and its linear combination"""
        inputs, combinations = [], []
        for linear in self.linears:
            if combinations:
                x = torch.relu(combinations[-1])
            inputs.append(x)
            combinations.append(linear(x))
        return combinations[-1], inputs, combinations

    def predict(self, x):
        return self(x)[0]
