"""One rank of the actor: answers the controller's calls over HTTP, and gives out the shards that it has"""

import concurrent.futures
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
import torch.distributed as dist

import rtensor
from engine import ActorEngine


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        tensor = rtensor.fetch(self.path.rpartition("/")[2])
        self.answer(memoryview(tensor.numpy().reshape(-1)).cast("B"))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/data/clear":
            result = rtensor.remove(request["shard_ids"])
        else:
            result = self.server.executor.submit(self.server.call, self.path[1:], request).result()
        self.answer(json.dumps(result).encode())


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.node_addr = f"127.0.0.1:{self.server_address[1]}"
        self.executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="engine")
        self.engine = ActorEngine()

    def call(self, method, arguments):
        torch.set_num_threads(1)
        arguments = rtensor.localize(arguments, self.node_addr)
        return rtensor.remotize(getattr(self.engine, method)(**arguments), self.node_addr)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    server = Server()
    started = {"address": server.node_addr, "head": server.engine.is_data_parallel_head()}
    print(json.dumps(started), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
