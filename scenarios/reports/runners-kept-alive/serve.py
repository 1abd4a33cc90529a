"""A server of models, each of which runs in a process of its own, and an agent that uses it"""

import collections
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import runner

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ("gemma", "llama", "mistral", "phi", "qwen")
MAX_LOADED, KEEP_ALIVE_S = 3, 300.0


def pull(name, folder):
    """Stands for the download of a model's packed weights"""
    source = np.random.default_rng(len(name) * 31 + ord(name[0]))
    path = os.path.join(folder, f"{name}.npy")
    np.save(path, source.integers(-127, 128, runner.SHAPE, dtype=np.int8))
    return path


class Runner:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "runner.py"), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.used = time.monotonic()

    def generate(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.used = time.monotonic()
        return answer

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Scheduler:
    """The runners that are loaded, from the one used longest ago to the latest"""

    def __init__(self, paths):
        self.paths, self.loaded = paths, collections.OrderedDict()

    def runner(self, name):
        if name not in self.loaded:
            while len(self.loaded) >= MAX_LOADED:
                self.unload(next(iter(self.loaded)))
            self.loaded[name] = Runner(self.paths[name])
        self.loaded.move_to_end(name)
        return self.loaded[name]

    def unload(self, name):
        self.loaded.pop(name).stop()

    def unload_idle(self):
        now = time.monotonic()
        for name in [name for name, one in self.loaded.items() if now - one.used > KEEP_ALIVE_S]:
            self.unload(name)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.scheduler.runner(request["model"]).generate(request)
        answer["loaded"] = list(self.server.scheduler.loaded)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main():
    os.makedirs("models", exist_ok=True)
    scheduler = Scheduler({name: pull(name, "models") for name in MODELS})
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.scheduler, server.timeout = scheduler, 0.5
        agent = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "agent.py"), str(server.server_address[1]), *MODELS]
        )
        while agent.poll() is None:
            server.handle_request()
            scheduler.unload_idle()
    for name in list(scheduler.loaded):
        scheduler.unload(name)
    return agent.returncode


if __name__ == "__main__":
    sys.exit(main())
