"""A store of rollouts in memory; it saves itself in the background after so many changes"""

import lzma
import os
import signal
import socket
import struct
import sys

import numpy as np

SLOTS, ROLLOUT = 1300, 64 * 84 * 84
SAVE_AFTER_CHANGES = 60
HEADER = struct.Struct("!cII")
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 19}]


def receive(connection, view):
    """Fills the view; whether the peer sent so much before it closed the connection"""
    while len(view):
        count = connection.recv_into(view)
        if not count:
            return False
        view = view[count:]
    return True


class Store:
    def __init__(self, dump):
        self.dump, self.child, self.changes = dump, 0, 0
        generator = np.random.default_rng(1)
        self.rollouts = np.empty((SLOTS, ROLLOUT), np.uint8)
        for slot in range(SLOTS):
            self.rollouts[slot] = generator.integers(0, 12, ROLLOUT, np.uint8)
        print(f"{self.rollouts.nbytes >> 20} MiB of rollouts loaded", flush=True)

    def save(self):
        with open(self.dump + ".part", "wb") as file:
            for rollout in self.rollouts:
                data = lzma.compress(rollout, format=lzma.FORMAT_RAW, filters=FILTERS)
                file.write(struct.pack("!I", len(data)) + data)
        os.rename(self.dump + ".part", self.dump)

    def background_save(self):
        self.changes = 0
        self.child = os.fork()
        if self.child:
            print(f"background saving started by pid {self.child}", flush=True)
            return
        status = 1
        try:
            self.save()
            status = 0
        finally:
            os._exit(status)

    def check_child(self):
        if self.child and os.waitpid(self.child, os.WNOHANG)[0]:
            print("background saving terminated", flush=True)
            self.child = 0

    def serve(self, connection):
        header = bytearray(HEADER.size)
        while receive(connection, memoryview(header)):
            command, slot, size = HEADER.unpack(header)
            if command == b"S":
                if not receive(connection, memoryview(self.rollouts[slot])[:size]):
                    break
                self.changes += 1
            else:
                connection.sendall(self.rollouts[slot])
            self.check_child()
            if self.changes >= SAVE_AFTER_CHANGES and not self.child:
                self.background_save()
        self.shutdown()

    def shutdown(self):
        print("shutdown requested", flush=True)
        if self.child:
            print("there is a child saving; it is stopped", flush=True)
            os.kill(self.child, signal.SIGTERM)
            os.waitpid(self.child, 0)


def main(path, dump):
    store = Store(dump)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(60)
        connection, _ = listener.accept()
        with connection:
            store.serve(connection)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
