"""The directory behind a load balancer that closes connections when it rebalances"""

import random
import socketserver
import struct
import zlib

import numpy as np

ENTRIES = 260_000


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        source = self.server.source
        while line := self.rfile.readline():
            number = int(line.split()[1])
            generator = np.random.default_rng(number)
            members = generator.integers(0, 90_000, ENTRIES, np.uint32)
            answer = members.tobytes()
            head = struct.pack("!II", len(answer), zlib.crc32(answer))
            if source.random() < 0.5:
                self.wfile.write(head + answer[: int(len(answer) * source.uniform(0.8, 0.99))])
                return
            self.wfile.write(head + answer)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    source = random.Random(5)


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
