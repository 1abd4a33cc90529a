"""An object store: serves the shards of a corpus of vectors over HTTP, some from a cold tier"""

import hashlib
import http.server
import sys
import time

import numpy as np

COLD = {2}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        shard = int(self.path.rpartition("/")[2])
        rows, width, warm_s, cold_s = self.server.settings
        vectors = np.random.default_rng(shard).standard_normal((int(rows), int(width)), np.float32)
        content = memoryview(vectors).cast("B")
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        blocks, seconds = 32, cold_s if shard in COLD else warm_s
        begin, size = time.monotonic(), -(-len(content) // blocks)
        for number in range(blocks):
            block = content[number * size : (number + 1) * size]
            # A block is verified before it leaves
            while time.monotonic() < begin + seconds * (number + 1) / blocks:
                hashlib.blake2b(block).digest()
            self.wfile.write(block)

    def log_message(self, *args):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.settings = [float(word) for word in sys.argv[1:]]
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
