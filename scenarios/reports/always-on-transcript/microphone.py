"""Sends speech in chunks, and shows the lines that come back; hours of it, as fast as they are transcribed"""

import socket
import sys

import numpy as np

CHUNK = 16_000 * 6
time = np.arange(CHUNK) / 16_000
generator = np.random.default_rng(7)
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
lines = connection.makefile()
shown = 0
try:
    while True:
        pitch = generator.uniform(90, 250)
        speech = np.sin(2 * np.pi * pitch * time) * np.sin(2 * np.pi * 3 * time) + generator.normal(0, 0.1, CHUNK)
        connection.sendall((speech * 12_000).clip(-32_768, 32_767).astype(np.int16).tobytes())
        line = lines.readline()
        if not line:
            break
        shown += 1
        if shown % 200 == 0:
            print(line.strip()[:60], flush=True)
except OSError:
    pass
