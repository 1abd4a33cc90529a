"""Sends the global parameters, and mixes in what comes back, until the time of the federation is over"""

import argparse
import pickle
import socket
import time

RUN_S = 36


def send(connection, message):
    data = pickle.dumps(message, protocol=5)
    connection.sendall(len(data).to_bytes(8, "big") + data)


def receive(incoming):
    return pickle.loads(incoming.read(int.from_bytes(incoming.read(8), "big")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--announce", required=True)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    with open(options.announce, "w") as file:
        print(listener.getsockname()[1], file=file)
    connection, _ = listener.accept()
    incoming = connection.makefile("rb")
    parameters = receive(incoming)
    end, number = time.monotonic() + RUN_S, 0
    while time.monotonic() < end:
        number += 1
        send(connection, {"kind": "fit", "round": number, "parameters": parameters})
        answer = receive(incoming)
        parameters = {
            name: (0.5 * value + 0.5 * answer["parameters"][name]).astype(value.dtype)
            for name, value in parameters.items()
        }
        print(f"round {number}: loss {answer['loss']:.4f}", flush=True)
    send(connection, {"kind": "disconnect"})
    connection.close()


if __name__ == "__main__":
    main()
