"""Keys and values of former frames, which the tracker attends to"""

import torch


class LongTermMemory:
    def __init__(self, max_length):
        self.max_length, self.frames = max_length, []

    def __len__(self):
        return len(self.frames)

    def add(self, key, value):
        self.frames.append((key.clone(), value.clone()))
        if len(self.frames) > self.max_length:
            del self.frames[1]

    def read(self, query):
        scale = query.shape[1] ** -0.5
        scores = torch.stack([query @ key for key, _ in self.frames]) * scale
        frames, queries, places = scores.shape
        weights = scores.permute(1, 0, 2).reshape(queries, frames * places).softmax(dim=1)
        weights = weights.reshape(queries, frames, places)
        readout = torch.zeros(queries, self.frames[0][1].shape[0])
        for number, (_, value) in enumerate(self.frames):
            readout += weights[:, number] @ value.t()
        return readout
