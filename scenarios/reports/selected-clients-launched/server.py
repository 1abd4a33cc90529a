"""The server of a simulated session: launches a process for each client that a round selects, and aggregates their reports"""

import argparse
import os
import pickle
import socket
import subprocess
import sys

import numpy as np


class Server:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.settimeout(45)
        self.processes, self.clients = [], []
        self.weights = None

    def launch_clients(self, wanted):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")
        port = str(self.listener.getsockname()[1])
        started = 0
        while len(self.processes) < wanted:
            number = len(self.processes) + 1
            self.processes.append(subprocess.Popen([sys.executable, script, "--id", str(number), "--port", port]))
            started += 1
        for _ in range(started):
            connection, _ = self.listener.accept()
            self.clients.append((connection, connection.makefile("rb")))

    def round(self, number, wanted):
        print(f"[Server] Selected {wanted} clients for round {number}", flush=True)
        self.launch_clients(wanted)
        request = pickle.dumps({"round": number, "weights": self.weights}, protocol=5)
        for connection, _ in self.clients[:wanted]:
            connection.sendall(len(request).to_bytes(8, "big") + request)
        reports = []
        for _, incoming in self.clients[:wanted]:
            head = incoming.read(8)
            if len(head) < 8:
                raise ConnectionError("a client closed its connection")
            reports.append(pickle.loads(incoming.read(int.from_bytes(head, "big"))))
        self.weights = {name: np.mean([one["weights"][name] for one in reports], axis=0) for name in reports[0]["weights"]}
        accuracy = np.mean([one["accuracy"] for one in reports])
        print(f"[Server] Round {number}: average accuracy {accuracy:.3f}", flush=True)

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients-per-round", type=int, nargs="+", required=True)
    options = parser.parse_args()
    server = Server()
    try:
        for number, wanted in enumerate(options.clients_per_round, 1):
            server.round(number, wanted)
    except OSError as error:
        print(f"[Server] {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
