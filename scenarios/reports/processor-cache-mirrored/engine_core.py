"""The engine core: runs the model for each request; inputs come with the request, or are in its cache already"""

import time

import numpy as np
import torch
from mm_cache import MirroredProcessingCache
from torch import nn

PATCH, WIDTH, VOCABULARY = 588, 256, 3000
REQUEST_S = 0.08


class VisionLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Linear(PATCH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.tower = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.GRUCell(WIDTH, WIDTH)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)

    def encode(self, pixel_values):
        return self.tower(self.patches(pixel_values)[None])[0].mean(0, keepdim=True)

    def decode(self, state, token):
        state = self.head(self.embedding(token), state)
        return state, (state @ self.embedding.weight.T).argmax(-1)


class EngineCore:
    def __init__(self):
        torch.manual_seed(0)
        self.model = VisionLanguageModel().eval()
        self.cache = MirroredProcessingCache()

    @torch.inference_mode()
    def execute(self, mm_hash, payload):
        until = time.monotonic() + REQUEST_S
        pixel_values = self.cache.get(mm_hash)
        if pixel_values is None:
            pixel_values = torch.from_numpy(np.frombuffer(bytearray(payload), np.float32).reshape(-1, PATCH))
            self.cache.put(mm_hash, pixel_values)
        state, tokens = self.model.encode(pixel_values), []
        token = torch.zeros(1, dtype=torch.long)
        while not tokens or time.monotonic() < until:
            state, token = self.model.decode(state, token)
            tokens.append(int(token))
        return tokens


def run_engine_core(connection):
    torch.set_num_threads(1)
    core = EngineCore()
    connection.send("ready")
    while (request := connection.recv()) is not None:
        connection.send(core.execute(*request))
    connection.close()
