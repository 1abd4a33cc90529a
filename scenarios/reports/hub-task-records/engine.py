"""An engine: fits a small model to the data of each task that it gets"""

import pickle
import socket
import sys

import numpy as np

STEPS = 150


def fit(data):
    samples, weights = data[:, :-1], np.zeros(data.shape[1] - 1, dtype=np.float32)
    for _ in range(STEPS):
        error = samples @ weights - data[:, -1]
        weights -= 0.3 * (samples.T @ error) / len(samples)
    return np.concatenate([weights, (samples @ weights - data[:, -1]) ** 2])


def main():
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        incoming = connection.makefile("rb")

        def send(message):
            data = pickle.dumps(message, protocol=5)
            connection.sendall(len(data).to_bytes(8, "big") + data)

        send("engine")
        done = 0
        while True:
            task = pickle.loads(incoming.read(int.from_bytes(incoming.read(8), "big")))
            if task is None:
                break
            identifier, buffers = task
            data = np.frombuffer(buffers, dtype=np.float32).reshape(-1, 33)
            send((identifier, fit(data).astype(np.float32).tobytes()))
            done += 1
    print(f"engine: {done} tasks", flush=True)


if __name__ == "__main__":
    main()
