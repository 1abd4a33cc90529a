"""A sender: records a signal, filters it, signs it, and posts it; two of its devices have last year's key"""

import json
import socket
import sys
import time

import numpy as np
from auth import KEYS, sign

SECONDS, RECORD_S, SAMPLES = 27.0, 0.03, 65536


def record(source, until):
    signal = source.standard_normal(SAMPLES, np.float32)
    while time.monotonic() < until:
        signal = np.convolve(signal, np.float32([0.25, 0.5, 0.25]), "same")
    return signal


def main():
    name, source = sys.argv[2], np.random.default_rng(len(sys.argv[2]))
    keys = {"door": KEYS[name], "roof": KEYS[name], "gate": KEYS[name], "yard": b"2023", "barn": b"2023"}
    end, statuses = time.monotonic() + SECONDS, []
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as connection:
        answers = connection.makefile("rb")
        while time.monotonic() < end:
            device = list(keys)[len(statuses) % len(keys)]
            body = record(source, time.monotonic() + RECORD_S).tobytes()
            scope = {"sender": name, "length": len(body), "signature": sign(keys[device], body)}
            connection.sendall(json.dumps(scope).encode() + b"\n" + body)
            status, length = answers.readline().split()
            answers.read(int(length))
            statuses.append(int(status))
            if len(statuses) % 200 == 0:
                print(f"{name}: {len(statuses)} posted, {statuses.count(401)} refused", flush=True)


if __name__ == "__main__":
    main()
