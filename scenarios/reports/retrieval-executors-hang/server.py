"""A search service for the memories of an assistant; each search runs its retrieval paths on an executor of its own"""

import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 40


class ContextThreadPoolExecutor(ThreadPoolExecutor):
    """Hands the context of the request on to its threads"""

    def __init__(self, context, **options):
        super().__init__(**options)
        self.context = context

    def submit(self, function, *arguments):
        return super().submit(lambda: function(self.context, *arguments))


class Searcher:
    def __init__(self, graph):
        self.graph = graph
        self.memories = torch.randn(6000, 384)

    def query_graph(self, statement):
        with socket.create_connection(self.graph) as connection:
            connection.sendall(statement.encode() + b"\n")
            return connection.makefile().readline()

    def working_memory(self, context, vector):
        return (self.memories[:500] @ vector).topk(5).indices.tolist()

    def long_term(self, context, vector):
        candidates = self.memories[torch.randint(len(self.memories), (700,))]
        related = self.query_graph(f"related {context['number']}")
        order = (candidates @ vector).argsort(descending=True)[:10]
        return [related.strip(), order.tolist()]

    def tools(self, context, vector):
        return (self.memories[-300:] @ vector).topk(3).indices.tolist()

    def search(self, request):
        vector = torch.from_numpy(np.random.default_rng(request["number"]).standard_normal(384)).float()
        with ContextThreadPoolExecutor(request, max_workers=5) as executor:
            paths = [executor.submit(path, vector) for path in (self.working_memory, self.long_term, self.tools)]
            return [path.result() for path in paths]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer = self.server.searcher.search(request)
        except OSError as error:
            answer = str(error)
        body = json.dumps(answer).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def main():
    store = subprocess.Popen([sys.executable, os.path.join(HERE, "graph_store.py")], stdout=subprocess.PIPE, text=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.request_queue_size = 64
    server.searcher = Searcher(("127.0.0.1", int(store.stdout.readline())))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    users = subprocess.Popen([sys.executable, os.path.join(HERE, "users.py"), str(server.server_port), str(SECONDS)])
    users.wait()
    print(f"{threading.active_count()} threads", flush=True)
    server.shutdown()
    store.kill()  # its connections end, and with them what waits for them
    store.wait()


if __name__ == "__main__":
    main()
