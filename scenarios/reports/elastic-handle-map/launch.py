"""Run an elastic job: starts the ranks, and reduces their tensors in rounds between changes of the hosts"""

import os
import selectors
import socket
import struct
import subprocess
import sys
import time

import numpy as np

from wire import ABORT, HEADER, READY, REJOIN, RESULT, STOP, TENSOR, receive_exactly

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, TENSORS, SECONDS, ROUND_S = 2, 6, 34.0, 0.5


class Controller:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connections = {}
        self.round, self.rejoined, self.pending = 0, set(), {}
        self.running, self.started, self.reduced, self.in_round = False, time.monotonic(), 0, 0

    def accept(self):
        while len(self.connections) < SIZE:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            (rank,) = struct.unpack("!i", receive_exactly(connection, 4))
            self.connections[rank] = connection

    def tell_all(self, kind):
        for connection in self.connections.values():
            connection.sendall(HEADER.pack(kind, self.round, 0, 0))

    def hosts_changed(self):
        self.running = False
        self.pending.clear()
        self.rejoined.clear()
        self.tell_all(ABORT)

    def on_rejoin(self, rank):
        self.rejoined.add(rank)
        if len(self.rejoined) < SIZE:
            return True
        if time.monotonic() - self.started > SECONDS:
            self.tell_all(STOP)
            return False
        self.round += 1
        self.round_started, self.in_round = time.monotonic(), 0
        self.running = True
        self.tell_all(READY)
        return True

    def on_tensor(self, rank, number, name, data):
        if not self.running or number != self.round:
            return
        between_steps = not self.pending and self.in_round % TENSORS == 0
        if between_steps and time.monotonic() - self.round_started > ROUND_S:
            self.hosts_changed()
            return
        gathered = self.pending.setdefault(name, {})
        gathered[rank] = np.frombuffer(data, dtype=np.float32)
        if len(gathered) < SIZE:
            return
        total = sum(gathered.values()) / np.float32(SIZE)
        del self.pending[name]
        self.reduced += 1
        self.in_round += 1
        payload = total.astype(np.float32).tobytes()
        for connection in self.connections.values():
            connection.sendall(HEADER.pack(RESULT, self.round, name, len(payload)))
            connection.sendall(payload)

    def serve(self):
        selector = selectors.DefaultSelector()
        for rank, connection in self.connections.items():
            selector.register(connection, selectors.EVENT_READ, rank)
        while True:
            for key, _ in selector.select():
                kind, number, name, size = HEADER.unpack(receive_exactly(key.fileobj, HEADER.size))
                data = receive_exactly(key.fileobj, size)
                if kind == TENSOR:
                    self.on_tensor(key.data, number, name, data)
                elif kind == REJOIN and not self.on_rejoin(key.data):
                    return


def main():
    controller = Controller()
    ranks = []
    for rank in range(SIZE):
        environment = {
            **os.environ,
            "HOROVOD_RANK": str(rank),
            "HOROVOD_LOCAL_RANK": str(rank),
            "HOROVOD_SIZE": str(SIZE),
            "HOROVOD_CONTROLLER_PORT": str(controller.listener.getsockname()[1]),
            "OMP_NUM_THREADS": "1",
        }
        ranks.append(subprocess.Popen([sys.executable, "-u", os.path.join(HERE, "train.py")], env=environment))
    controller.accept()
    controller.serve()
    statuses = [rank.wait() for rank in ranks]
    print(f"{controller.round} rounds, {controller.reduced} reductions, ranks ended with {statuses}", flush=True)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
