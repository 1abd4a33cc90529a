"""The states of all nodes, and how the messages of interactions update them"""

import numpy as np
import torch
from torch import nn


class Memory:
    def __init__(self, nodes, width):
        self.states = torch.from_numpy(np.zeros((nodes, width), np.float32))
        self.last_update = torch.from_numpy(np.zeros(nodes, np.float32))
        self.updated = torch.zeros(nodes, dtype=torch.bool)
        self.messages = None

    def reset(self):
        rows = self.updated.nonzero().squeeze(1)
        for part in rows.split(20_000):
            self.states[part] = 0.0
            self.last_update[part] = 0.0
        self.updated.zero_()
        self.messages = None

    def states_of(self, nodes):
        return self.states[nodes]

    def store(self, nodes, states):
        self.states[nodes] = states
        self.updated[nodes] = True

    def set_messages(self, sources, destinations, edges, times):
        self.messages = (torch.cat([sources, destinations]), torch.cat([edges, edges]), torch.cat([times, times]))


class MemoryUpdater(nn.Module):
    """The last message of each node goes through a gated unit with the node's state"""

    def __init__(self, width, edge_width):
        super().__init__()
        self.time = nn.Linear(1, 16)
        self.cell = nn.GRUCell(edge_width + 16, width)

    def forward(self, memory, limit=None):
        nodes, edges, times = (part[:limit] for part in memory.messages)
        elapsed = (times - memory.last_update[nodes])[:, None]
        inputs = torch.cat([edges, torch.cos(self.time(elapsed))], dim=1)
        states = self.cell(inputs, memory.states[nodes])
        if limit is None:
            memory.last_update[nodes] = times
        return nodes, states
