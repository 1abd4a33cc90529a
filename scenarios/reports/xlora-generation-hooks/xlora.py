"""Mixture of low-rank adapters: a classifier gives each token of each layer the scalings of the adapters"""

import functools

import torch
from torch import nn


class AdaptedLinear(nn.Module):
    def __init__(self, width_in, width_out, adapters, rank=4):
        super().__init__()
        self.base, self.split = nn.Linear(width_in, width_out), (adapters, rank)
        self.down = nn.Parameter(torch.randn(width_in, adapters * rank) / width_in**0.5)
        self.up = nn.Parameter(torch.randn(adapters * rank, width_out) / rank**0.5)

    def forward(self, x, scalings=None):
        out = self.base(x)
        if scalings is not None:
            low = (x @ self.down).unflatten(-1, self.split) * scalings[..., None]
            out = out + low.flatten(-2) @ self.up
        return out


class Block(nn.Module):
    def __init__(self, width, adapters):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = AdaptedLinear(width, 2 * width, adapters), nn.Linear(2 * width, width)

    def forward(self, x):
        mixed = self.norm(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
        return x + self.second(torch.nn.functional.gelu(self.first(mixed)))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=512, width=96, layers=6, adapters=8):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, adapters) for _ in range(layers))

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return x[:, -1] @ self.embedding.weight.T


class XLoraModel(nn.Module):
    def __init__(self, model, adapters=8):
        super().__init__()
        self.model, self.adapters = model, adapters
        width, layers = model.embedding.embedding_dim, len(model.blocks)
        self.classifier = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, layers * adapters))

    def predict_scalings(self, ids):
        logits = self.classifier(self.model.embedding(ids))
        return logits.unflatten(-1, (len(self.model.blocks), self.adapters)).softmax(-1)

    def forward(self, ids):
        def inject(number, scalings, layer, args, kwargs):
            kwargs["scalings"] = scalings[:, :, number]
            return args, kwargs

        scalings = self.predict_scalings(ids)
        handles = []
        for number, block in enumerate(self.model.blocks):
            hook = functools.partial(inject, number, scalings)
            handles.append(block.first.register_forward_pre_hook(hook, with_kwargs=True))
        self.handles = handles
        return self.model(ids)

    @torch.inference_mode()
    def generate(self, ids, count):
        """Appends the likeliest token again and again; the context is a window of the last tokens"""
        window = ids.shape[1]
        for _ in range(count):
            following = self(ids[:, -window:]).argmax(-1, keepdim=True)
            ids = torch.cat([ids, following], 1)
        for handle in self.handles:
            handle.remove()
        return ids[:, window:]
