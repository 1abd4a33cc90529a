"""The devices: answer a request for the counters of all interfaces of a device"""

import socketserver

import numpy as np

INTERFACES = 2500


class Agent(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            device, poll = (int(word) for word in line.split())
            generator = np.random.default_rng(device)
            rates = generator.integers(10_000, 4_000_000_000, size=(2, INTERFACES), dtype=np.int64)
            self.wfile.write((rates * (poll + 100)).tobytes())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Agent) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
