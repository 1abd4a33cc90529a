"""A cross-encoder on the CPU, and its provider with the heap trimmed after each request"""

import asyncio
import ctypes
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

WIDTH, HEADS, LAYERS = 192, 4, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.forward_net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        pairs, length, _ = x.shape
        parts = self.joint(self.first(x)).view(pairs, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        weights = (parts[0] @ parts[1].transpose(2, 3) / (WIDTH // HEADS) ** 0.5).softmax(3)
        x = x + self.out((weights @ parts[2]).transpose(1, 2).reshape(pairs, length, WIDTH))
        return x + self.forward_net(self.second(x))


class CrossEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30_000, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 1)

    @torch.inference_mode()
    def predict(self, pairs):
        length = max(len(pair) for pair in pairs)
        tokens = torch.tensor([pair + [0] * (length - len(pair)) for pair in pairs])
        return self.head(self.layers(self.embedding(tokens))[:, 0])[:, 0].tolist()


class LocalReranker:
    def __init__(self):
        self.model = CrossEncoder().eval()
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="reranker")
        self.trim = ctypes.CDLL(None).malloc_trim

    def _predict(self, query, passages):
        scores = self.model.predict([query + passage for passage in passages])
        self.trim(0)
        return scores

    async def predict(self, query, passages):
        return await asyncio.get_running_loop().run_in_executor(self.executor, self._predict, query, passages)
