"""The engine core: schedules the requests, and runs each step on the workers, who have half of each layer"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, RANKS, WORDS = 1024, 2, 512


class WorkerProc:
    def __init__(self, rank, length):
        death, self.alive = os.pipe()
        command = [sys.executable, os.path.join(HERE, "worker.py"), str(rank), length, str(death)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[death], bufsize=0
        )
        os.close(death)

    def send(self, hidden):
        self.process.stdin.write(hidden.tobytes())

    def receive(self):
        data = b""
        while len(data) < 4 * WIDTH:
            part = self.process.stdout.read(4 * WIDTH - len(data))
            if not part:
                raise RuntimeError("a worker is gone")
            data += part
        return np.frombuffer(data, np.float32)


class EngineCore:
    def __init__(self, length):
        self.workers = [WorkerProc(rank, length) for rank in range(RANKS)]
        self.table = np.random.default_rng(9).standard_normal((WORDS, WIDTH), np.float32)

    def step(self, hidden):
        for worker in self.workers:
            worker.send(hidden)
        return np.tanh(sum(worker.receive() for worker in self.workers))

    def generate(self, prompt, count):
        hidden = self.table[[ord(letter) % WORDS for letter in prompt]].mean(0)
        tokens = []
        for _ in range(count):
            hidden = self.step(hidden)
            tokens.append(int((self.table @ hidden).argmax()))
            hidden = hidden + self.table[tokens[-1]]
        return tokens


def main():
    base, length, stop_at = sys.argv[1], sys.argv[2], float(os.environ["STOP_AT"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    inputs = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inputs.bind(f"{base}.core")
    engine = EngineCore(length)
    engine.step(np.zeros(WIDTH, np.float32))
    inputs.sendto(json.dumps({"id": 0, "tokens": []}).encode(), f"{base}.api")
    # The busy loop of the core: it waits for the next request
    while (left := stop_at - time.time()) > 0:
        inputs.settimeout(left)
        try:
            request = json.loads(inputs.recv(1 << 16))
        except TimeoutError:
            break
        tokens = engine.generate(request["prompt"], request["count"])
        inputs.sendto(json.dumps({"id": request["id"], "tokens": tokens}).encode(), f"{base}.api")


if __name__ == "__main__":
    main()
