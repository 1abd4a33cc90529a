"""A small language model, an engine for batches, and one with an asyncio interface"""

import asyncio
import itertools

import torch

WIDTH, VOCABULARY, LAYERS = 256, 2000, 4


class EngineDeadError(RuntimeError):
    pass


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, state, keys, values, position):
        query, key, value = self.project(state).chunk(3, dim=-1)
        keys[:, position], values[:, position] = key, value
        scores = torch.einsum("bw,btw->bt", query, keys[:, : position + 1]) / WIDTH**0.5
        mixed = torch.einsum("bt,btw->bw", scores.softmax(-1), values[:, : position + 1])
        return state + self.out(mixed)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Attention() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    @torch.inference_mode()
    def generate(self, tokens, length):
        batch = len(tokens)
        caches = [(torch.zeros(batch, length, WIDTH), torch.zeros(batch, length, WIDTH)) for _ in self.layers]
        outputs = []
        for position in range(length):
            state = self.embedding(tokens)
            for layer, (keys, values) in zip(self.layers, caches):
                state = layer(state, keys, values, position)
            tokens = self.head(state).argmax(-1)
            outputs.append(tokens)
        return torch.stack(outputs, 1)


class LLM:
    def __init__(self):
        self.model = Model().eval()

    def generate(self, prompts, length):
        return self.model.generate(torch.tensor(prompts), length).tolist()


class AsyncLLM:
    def __init__(self):
        self.model = Model().eval()
        self.requests = []
        self.futures = {}
        self.numbers = itertools.count()
        self.output_handler = None
        self.arrived = None

    async def run_output_handler(self):
        while True:
            await self.arrived.wait()
            self.arrived.clear()
            while self.requests:
                number, prompt, length = self.requests.pop(0)
                output = self.model.generate(torch.tensor([prompt]), length)
                self.futures.pop(number).set_result(output[0].tolist())

    async def generate(self, prompt, length):
        if self.output_handler is None:
            self.arrived = asyncio.Event()
            self.output_handler = asyncio.get_running_loop().create_task(self.run_output_handler())
        if self.output_handler.done():
            raise EngineDeadError("EngineCore encountered an issue. See stack trace (above) for the root cause.")
        number, future = next(self.numbers), asyncio.get_running_loop().create_future()
        self.futures[number] = future
        self.requests.append((number, prompt, length))
        self.arrived.set()
        return await future
