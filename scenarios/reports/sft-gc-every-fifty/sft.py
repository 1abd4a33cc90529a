"""The supervised fine-tuning of a small language model"""

import torch
from torch import nn

VOCAB, WIDTH = 800, 128


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        return self.head(self.layers(self.tokens(ids)))


class MicroBatch:
    """A batch on its way through the trainer; its parts are told of the others through it."""

    def __init__(self, ids):
        self.ids, self.parts = ids, {}
        self.parts["loss"] = LossPart(self)

    def run(self, model):
        self.logits = model(self.ids[:, :-1])
        loss = self.parts["loss"].compute()
        loss.backward()
        return loss.detach()


class LossPart:
    def __init__(self, batch):
        self.batch = batch

    def compute(self):
        logits, targets = self.batch.logits, self.batch.ids[:, 1:]
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
