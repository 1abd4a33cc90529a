"""An inference server whose instances reserve much address space and use little of it."""

import json
import mmap
import multiprocessing
import queue
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

INSTANCES = 6
ARENA = 4 << 30
REQUESTS = 280
MAP_NORESERVE = 0x4000


class ModelInstance:
    """Reserves an arena for the longest sequence of the largest batch, as the backend does, and works in its start."""

    def __init__(self, number):
        self.arena = mmap.mmap(-1, ARENA, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
        rng = np.random.default_rng(number)
        self.weights = [rng.standard_normal((640, 640), np.float32) / 26 for _ in range(3)]
        self.hidden = np.frombuffer(self.arena, np.float32, 192 * 640).reshape(192, 640)

    def infer(self, seed):
        self.hidden[:] = np.random.default_rng(seed).standard_normal(self.hidden.shape, np.float32)
        for weight in self.weights:
            np.tanh(self.hidden @ weight, out=self.hidden)
        return float(self.hidden.mean())


class TritonHandler(BaseHTTPRequestHandler):
    work = queue.Queue(16)

    def do_POST(self):
        seed = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        done, answer = threading.Event(), {}
        self.work.put((seed, answer, done))
        done.wait()
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def instance_thread(instance):
    while (item := TritonHandler.work.get()) is not None:
        seed, answer, done = item
        answer["outputs"] = instance.infer(seed)
        done.set()


def client(port):
    url = f"http://127.0.0.1:{port}/v2/models/encoder/infer"
    for number in range(REQUESTS):
        with urllib.request.urlopen(url, json.dumps({"inputs": number}).encode(), timeout=60) as answer:
            output = json.load(answer)["outputs"]
        if number % 50 == 0:
            print(f"request {number}: {output:.5f}", flush=True)


def main():
    threading.stack_size(512 << 20)
    server = ThreadingHTTPServer(("127.0.0.1", 0), TritonHandler)
    clients = [multiprocessing.Process(target=client, args=(server.server_port,)) for _ in range(2)]
    for process in clients:
        process.start()
    threads = [threading.Thread(target=instance_thread, args=(ModelInstance(number),)) for number in range(INSTANCES)]
    for thread in threads:
        thread.start()
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    for process in clients:
        process.join()
    server.shutdown()
    for _ in threads:
        TritonHandler.work.put(None)
    for thread in (*threads, serving):
        thread.join()
    server.server_close()


if __name__ == "__main__":
    main()
