"""A server of a small model: prefill of each prompt with buffers of the device's allocator"""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch

from buffers import BufferCache

torch.set_num_threads(1)
SECONDS, CLEAR_EVERY, WIDTH, VOCABULARY = 30.0, 50, 192, 4000


class ModelRunner:
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.embedding = torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.1
        self.up = [torch.randn(WIDTH, 3 * WIDTH, generator=generator) * 0.05 for _ in range(2)]
        self.down = [torch.randn(3 * WIDTH, WIDTH, generator=generator) * 0.05 for _ in range(2)]
        self.buffers, self.requests = BufferCache(), 0

    @torch.inference_mode()
    def execute(self, tokens):
        total = len(tokens)
        hidden, mixed = self.buffers.empty(total, WIDTH), self.buffers.empty(total, WIDTH)
        wide = self.buffers.empty(total, 3 * WIDTH)
        torch.index_select(self.embedding, 0, torch.tensor(tokens), out=hidden)
        for up, down in zip(self.up, self.down):
            torch.mm(hidden, up, out=wide).relu_()
            torch.mm(wide, down, out=mixed)
            hidden.add_(mixed)
            hidden.div_(hidden.norm(dim=1, keepdim=True))
        token = int((self.embedding @ hidden[-1]).argmax())
        self.buffers.release(hidden, mixed, wide)
        self.requests += 1
        if self.requests % CLEAR_EVERY == 0:
            self.buffers.clear()
        return token


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    runner, executor = ModelRunner(), ThreadPoolExecutor(1, thread_name_prefix="runner")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        client = subprocess.Popen([sys.executable, os.path.join(here, "client.py"), port])
        connection, _ = listener.accept()
    end = time.monotonic() + SECONDS
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            token = executor.submit(runner.execute, json.loads(line)["prompt"]).result()
            connection.sendall(json.dumps({"token": token}).encode() + b"\n")
            if runner.requests % 100 == 0:
                print(f"{runner.requests} requests, buffers at most {runner.buffers.peak >> 20} MiB", flush=True)
            if time.monotonic() > end:
                break
    client.wait()
    executor.shutdown()


if __name__ == "__main__":
    main()
