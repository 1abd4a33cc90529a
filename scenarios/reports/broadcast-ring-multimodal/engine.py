"""The engine: broadcasts the payload of each step to its workers through a ring of shared memory"""

import json
import mmap
import os
import subprocess
import sys
import time
import uuid

import numpy as np

WORLD_SIZE, SECONDS, RISE_S = 2, 40.0, 13.0
MAX_CHUNKS, MAX_CHUNK_BYTES = 10, 24 << 20
TEXT_S, STEP_S = 2.0, 0.08


class ShmRingBuffer:
    def __init__(self):
        self.path = f"/dev/shm/psm_{uuid.uuid4().hex[:8]}"
        fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.ftruncate(fd, MAX_CHUNKS * MAX_CHUNK_BYTES)
        self.memory = mmap.mmap(fd, MAX_CHUNKS * MAX_CHUNK_BYTES)
        os.close(fd)
        self.current = 0

    def write(self, payload):
        start = self.current * MAX_CHUNK_BYTES
        self.memory[start : start + len(payload)] = payload
        self.current = (self.current + 1) % MAX_CHUNKS
        return start

    def close(self):
        self.memory.close()
        os.unlink(self.path)


class Worker:
    def __init__(self, rank, ring):
        here = os.path.dirname(os.path.abspath(__file__))
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD_SIZE)}
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "worker.py"), ring.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())


def payload_bytes(elapsed, step):
    """Text only at first; then every other step has images, whose size has reached its largest after a while"""
    if elapsed < TEXT_S or step % 3 == 0:
        return 48 << 10
    share = min(1.0, (elapsed - TEXT_S) / (RISE_S - TEXT_S))
    return int(MAX_CHUNK_BYTES * (0.08 + 0.92 * share)) & ~4095


def main():
    ring = ShmRingBuffer()
    workers = [Worker(rank, ring) for rank in range(WORLD_SIZE)]
    for worker in workers:
        worker.receive()
    images = memoryview(np.random.default_rng(1).integers(0, 256, MAX_CHUNK_BYTES, dtype=np.uint8))
    started, step, tokens = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - started) < SECONDS:
        size = payload_bytes(elapsed, step)
        start = ring.write(images[:size])
        for worker in workers:
            worker.send({"start": start, "bytes": size, "seconds": STEP_S})
        tokens += sum(worker.receive()["tokens"] for worker in workers)
        step += 1
        if step % 100 == 0:
            print(f"step {step}: {tokens} tokens", flush=True)
    for worker in workers:
        worker.process.stdin.close()
        worker.process.wait()
    ring.close()
    print(f"{step} steps, {tokens} tokens", flush=True)


if __name__ == "__main__":
    main()
