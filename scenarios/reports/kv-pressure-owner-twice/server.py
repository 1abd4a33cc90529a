"""An inference server: one engine in a thread, and requests over HTTP"""

import argparse
import http.server
import json
import queue
import signal
import sys
import threading
import time
import traceback

import torch
from resources import TOKENS_PER_BLOCK, ResourceManager
from torch import nn

LAYERS, WIDTH, VOCABULARY, REQUEST_S = 4, 384, 4000, 0.4


class Engine:
    def __init__(self):
        torch.manual_seed(0)
        self.manager = ResourceManager(400, 300, LAYERS, WIDTH)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.projections = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(LAYERS))
        self.requests, self.available = queue.Queue(maxsize=16), True

    @torch.inference_mode()
    def prefill(self, request):
        until = time.monotonic() + REQUEST_S
        tokens = torch.tensor(request["tokens"]).view(-1, TOKENS_PER_BLOCK)
        blocks = self.manager.materialize(request["session"], request["prefix"], len(tokens))
        while True:
            for block, row in zip(blocks, tokens, strict=True):
                x = self.embedding(row)
                for number, projection in enumerate(self.projections):
                    key, value = projection(x).chunk(2, -1)
                    self.manager.device.data[block, number, 0] = key
                    self.manager.device.data[block, number, 1] = value
                    x = x + torch.tanh(value)
            if time.monotonic() > until:
                return int((self.embedding.weight @ x[-1]).argmax())

    def run(self):
        """Until an error, after which nothing is taken any more"""
        try:
            while True:
                request, reply = self.requests.get()
                reply.put((200, {"token": self.prefill(request)}))
        except Exception as error:
            self.available = False
            traceback.print_exc()
            reply.put((500, {"error": str(error)}))
            while True:
                try:
                    self.requests.get_nowait()[1].put((503, {"error": "inference engine is unavailable"}))
                except queue.Empty:
                    return

    def answer(self, request):
        if not self.available:
            return 503, {"error": "inference engine is unavailable"}
        reply = queue.Queue()
        self.requests.put((request, reply))
        try:
            return reply.get(timeout=20)
        except queue.Empty:
            return 503, {"error": "inference engine is unavailable"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.engine.answer(request)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.engine = Engine()
    threading.Thread(target=server.engine.run, daemon=True, name="engine").start()
    with open(parser.parse_args().port_file, "w") as file:
        file.write(str(server.server_port))
    server.serve_forever()


if __name__ == "__main__":
    main()
