"""A database client whose monitor checks a server that is down: each description keeps the exception of its check."""

import socket
import threading
import zlib

import numpy as np

CHECKS = 260


class ServerDescription:
    def __init__(self, address, reply=None, error=None):
        self.address = address
        self.reply = reply
        self.error = error  # the exception, and with it the traceback and the frames

    @property
    def known(self):
        return self.reply is not None


class Monitor(threading.Thread):
    def __init__(self, address, hosts):
        super().__init__(name="server-monitor", daemon=True)
        self.hosts = hosts
        self.description = ServerDescription(address)
        self.wake = threading.Condition()
        self.checks = 0

    def hello(self, number):
        """The handshake with the client's metadata and its compressed cluster state."""
        state = np.random.default_rng(number).integers(0, 40, 1_200_000, np.uint8)
        return bytearray(state.tobytes()), zlib.compress(state[:600_000], 6)

    def check_with_socket(self, description):
        message, compressed = self.hello(self.checks)
        with socket.create_connection(description.address, timeout=1) as connection:
            connection.sendall(compressed)
            return ServerDescription(description.address, connection.recv(len(message)))

    def check_server(self):
        previous = self.description
        try:
            return self.check_with_socket(previous)
        except OSError as error:
            return ServerDescription(previous.address, error=error)

    def run(self):
        while self.checks < CHECKS:
            self.description = self.check_server()
            self.checks += 1
            with self.wake:
                self.wake.notify_all()
                self.wake.wait(0.05)


def main():
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))  # bound, and never listening: connections are refused
    monitor = Monitor(closed.getsockname(), ["db0", "db1"])
    monitor.start()
    while monitor.is_alive():
        with monitor.wake:
            monitor.wake.wait(2)
        if monitor.checks % 20 == 0:
            print(f"check {monitor.checks}: {type(monitor.description.error).__name__}", flush=True)
    monitor.join()
    closed.close()


if __name__ == "__main__":
    main()
