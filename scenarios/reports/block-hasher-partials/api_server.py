"""The API process of the server: keeps some requests with images in flight at the engine"""

import multiprocessing
import random
import time

import numpy as np

from engine_core import PATCHES, PATCH, run_engine_core

RUN_S, IN_FLIGHT = 33.0, 6


class Clients:
    """Ask about an image each, in a closed loop"""

    def __init__(self, engine):
        self.engine = engine
        self.source = np.random.default_rng(2)
        self.words = random.Random(5)
        self.sent = 0

    def send(self):
        prompt = [self.words.randrange(32_000) for _ in range(1300)]
        pixels = self.source.random((PATCHES, PATCH), dtype=np.float32)
        self.engine.send({"request_id": f"chatcmpl-{self.sent}", "prompt": prompt})
        self.engine.send_bytes(memoryview(pixels.reshape(-1)).cast("B"))
        self.sent += 1


def main():
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    core = context.Process(target=run_engine_core, args=(there,), name="EngineCore")
    core.start()
    there.close()
    assert here.recv() == "READY"
    clients, done, tokens = Clients(here), 0, 0
    end = time.monotonic() + RUN_S
    for _ in range(IN_FLIGHT):
        clients.send()
    while done < clients.sent:
        output = here.recv()
        done += 1
        tokens += len(output["tokens"])
        if time.monotonic() < end:
            clients.send()
        if done % 12 == 0:
            print(f"{done} requests finished, {tokens} tokens", flush=True)
    here.send(None)
    core.join()


if __name__ == "__main__":
    main()
