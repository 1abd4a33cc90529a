"""The client, a notebook's side: bootstraps a regression, with a few samples of the table under way at a time"""

import pickle
import socket
import sys
import time

import numpy as np

RUN_S = 36
ROWS, DRAWN = 40_000, 5_000


def main():
    generator = np.random.default_rng(2)
    table = generator.standard_normal((ROWS, 33), dtype=np.float32)
    total, squares, results = np.zeros(32), np.zeros(32), 0
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        incoming = connection.makefile("rb")

        def send(message):
            data = pickle.dumps(message, protocol=5)
            connection.sendall(len(data).to_bytes(8, "big") + data)

        send("client")
        end, identifier = time.monotonic() + RUN_S, 0
        while time.monotonic() < end:
            send((identifier, table[generator.integers(0, ROWS, DRAWN)].tobytes()))
            if identifier >= 4:
                _, buffers = pickle.loads(incoming.read(int.from_bytes(incoming.read(8), "big")))
                weights = np.frombuffer(buffers, dtype=np.float32)[:32].astype(np.float64)
                total += weights
                squares += weights**2
                results += 1
                if results % 200 == 0:
                    spread = np.sqrt(squares / results - (total / results) ** 2).mean()
                    print(f"{results} samples: spread {spread:.5f}", flush=True)
            identifier += 1
        send(None)


if __name__ == "__main__":
    main()
