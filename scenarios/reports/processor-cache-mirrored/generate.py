"""Describes the photos of a collection, some of which are asked about again"""

import hashlib
import multiprocessing
import time

import numpy as np
import torch
from engine_core import PATCH, run_engine_core
from mm_cache import CAPACITY, MirroredProcessingCache

SECONDS, SIDE = 31.0, 336


class Processor:
    """Resizes and normalizes an image, and cuts it into patches"""

    def __init__(self):
        self.mean = torch.tensor([0.481, 0.458, 0.408]).view(3, 1, 1)
        self.std = torch.tensor([0.269, 0.261, 0.276]).view(3, 1, 1)

    def __call__(self, image):
        pixels = torch.from_numpy(image).permute(2, 0, 1).float()[None] / 255
        pixels = torch.nn.functional.interpolate(pixels, (SIDE, SIDE), mode="bilinear")[0]
        pixels = (pixels - self.mean) / self.std
        patches = pixels.reshape(3, SIDE // 14, 14, SIDE // 14, 14)
        return patches.permute(1, 3, 0, 2, 4).reshape(-1, PATCH).contiguous()


class LLM:
    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.core = context.Process(target=run_engine_core, args=(theirs,), name="EngineCore")
        self.core.start()
        theirs.close()
        self.processor, self.cache = Processor(), MirroredProcessingCache()
        assert self.connection.recv() == "ready"

    def generate(self, image):
        mm_hash = hashlib.blake2b(image.tobytes(), digest_size=16).hexdigest()
        payload = None
        if self.cache.get(mm_hash) is None:
            pixel_values = self.processor(image)
            self.cache.put(mm_hash, pixel_values)
            payload = pixel_values.numpy().tobytes()
        self.connection.send((mm_hash, payload))
        return self.connection.recv(), payload is None

    def shutdown(self):
        self.connection.send(None)
        self.core.join()


def photo(number):
    """A photo of 300 by 400 pixels"""
    source = np.random.default_rng(number)
    coarse = source.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    return np.ascontiguousarray(coarse.repeat(10, axis=0).repeat(10, axis=1))


def main():
    torch.set_num_threads(1)
    llm, chooser = LLM(), np.random.default_rng(1)
    end, requests, hits, tokens, newest = time.monotonic() + SECONDS, 0, 0, 0, 0
    while time.monotonic() < end:
        if newest > 10 and chooser.random() < 0.1:
            number = newest - int(chooser.integers(1, 10))
        else:
            number, newest = newest, newest + 1
        answer, hit = llm.generate(photo(number))
        requests, hits, tokens = requests + 1, hits + hit, tokens + len(answer)
        if requests % 50 == 0:
            share = 100 * llm.cache.size / CAPACITY
            print(f"{requests} requests, {hits} hits, {tokens} tokens, cache {share:.0f} % full", flush=True)
    llm.shutdown()


if __name__ == "__main__":
    main()
