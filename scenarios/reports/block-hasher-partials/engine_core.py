"""The core of the engine: schedules requests, runs the model step by step, and keeps hashes of full blocks"""

import array
import collections
import functools
import gc
import hashlib
import time

import torch

BLOCK, PATCHES, PATCH = 16, 1900, 588
STEPS, STEP_S = 16, 0.11
CACHED_BLOCKS = 4000


def get_request_block_hasher(block_size):
    def request_block_hasher(request):
        hashes = []
        previous = request.block_hashes[-1] if request.block_hashes else b"root"
        start = len(request.block_hashes) * block_size
        while start + block_size <= len(request.all_token_ids):
            block = request.all_token_ids[start : start + block_size]
            previous = hashlib.sha256(previous + block.tobytes()).digest()
            hashes.append(previous)
            start += block_size
        return hashes

    return request_block_hasher


class Request:
    def __init__(self, request_id, prompt, pixels, block_hasher):
        self.request_id = request_id
        self.all_token_ids = array.array("q", prompt)
        self.all_token_ids.extend(range(32_000, 32_000 + PATCHES))
        self.mm_features = pixels
        self.output = array.array("q")
        self.block_hashes = []
        self.get_hash_new_full_blocks = functools.partial(block_hasher, self)
        self.block_hashes.extend(self.get_hash_new_full_blocks())

    def append_output_token(self, token):
        self.output.append(token)
        self.all_token_ids.append(token)
        self.block_hashes.extend(self.get_hash_new_full_blocks())


class Vision(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(PATCH, 128)
        self.mix = torch.nn.Linear(128, 128)
        self.head = torch.nn.Linear(128, 1000)

    def forward(self, patches):
        hidden = torch.nn.functional.gelu(self.mix(self.embed(patches)))
        return self.head(hidden.mean(0)).argmax().item()


class EngineCore:
    def __init__(self, pipe):
        self.pipe = pipe
        torch.manual_seed(0)
        self.model = Vision().eval()
        self.block_hasher = get_request_block_hasher(BLOCK)
        self.running = {}
        self.cached_blocks = collections.OrderedDict()
        self.going = True

    def add_requests(self):
        while self.going and (not self.running or self.pipe.poll()):
            head = self.pipe.recv()
            if head is None:
                self.going = False
                return
            pixels = torch.empty(PATCHES, PATCH)
            self.pipe.recv_bytes_into(memoryview(pixels.numpy().reshape(-1)).cast("B"))
            request = Request(head["request_id"], head["prompt"], pixels, self.block_hasher)
            self.running[request.request_id] = request

    def schedule(self):
        """The blocks of each running request: number, and whether it is cached"""
        tables = {}
        for request_id, request in self.running.items():
            tables[request_id] = [[block, key in self.cached_blocks] for block, key in enumerate(request.block_hashes)]
        return tables

    def step(self):
        tables = self.schedule()
        until, start = time.monotonic() + STEP_S, 0
        tokens = {}
        while time.monotonic() < until:
            for request_id, request in self.running.items():
                tokens[request_id] = self.model(request.mm_features[start : start + 400])
            start = (start + 400) % PATCHES
        for request_id, token in tokens.items():
            self.running[request_id].append_output_token(token + len(tables[request_id]) % 7)
        over = [request_id for request_id, request in self.running.items() if len(request.output) == STEPS]
        for request_id in over:
            self.finish(self.running.pop(request_id))

    def finish(self, request):
        for key in request.block_hashes:
            self.cached_blocks[key] = None
        while len(self.cached_blocks) > CACHED_BLOCKS:
            self.cached_blocks.popitem(last=False)
        self.pipe.send({"request_id": request.request_id, "tokens": request.output.tolist()})

    def run(self):
        while True:
            self.add_requests()
            if not self.going and not self.running:
                return
            self.step()


def run_engine_core(pipe):
    torch.set_num_threads(1)
    core = EngineCore(pipe)
    gc.collect()
    gc.freeze()
    pipe.send("READY")
    with torch.inference_mode():
        core.run()
