"""A broker with one topic: answers each fetch with the records from an offset on"""

import socket
import struct
import sys

import numpy as np

RECORDS, SIZE = 96, 2048


def batch(offset, canvas):
    values = np.roll(canvas, offset % canvas.size)[: RECORDS * SIZE].tobytes()
    parts = [struct.pack(">I", RECORDS)]
    for number in range(RECORDS):
        parts.append(struct.pack(">QI", offset + number, SIZE))
        parts.append(values[number * SIZE : (number + 1) * SIZE])
    return b"".join(parts)


def main():
    canvas = np.random.default_rng(8).integers(0, 256, RECORDS * SIZE, dtype=np.uint8)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with connection:
        requests = connection.makefile("rb")
        while request := requests.read(8):
            (offset,) = struct.unpack(">Q", request)
            answer = batch(offset, canvas)
            connection.sendall(struct.pack(">I", len(answer)) + answer)


if __name__ == "__main__":
    sys.exit(main())
