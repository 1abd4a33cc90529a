"""Three meeting rooms with six microphones each, which send their audio in chunks of two seconds"""

import socket
import struct
import sys
import time

import numpy as np

CHANNELS, CHUNK, ROOMS = 6, 32000, 3


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    return data


def main():
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    generator = np.random.default_rng(3)
    rooms = [socket.create_connection(("127.0.0.1", port)) for _ in range(ROOMS)]
    started, answers = time.monotonic(), [(0.0, 0)] * ROOMS
    while time.monotonic() - started < seconds:
        for room, connection in enumerate(rooms):
            loudness = 0.4 if generator.random() < 0.5 else 0.02
            chunk = loudness * generator.standard_normal((CHANNELS, CHUNK), dtype=np.float32)
            connection.sendall(chunk.tobytes())
            answers[room] = struct.unpack("<fI", receive(connection, 8))
    for room, (length, segments) in enumerate(answers):
        print(f"room {room}: {length:.0f} s, {segments} segments", flush=True)
    for connection in rooms:
        connection.close()


if __name__ == "__main__":
    main()
