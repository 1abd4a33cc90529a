"""A robot that asks for depth maps: coarse ones for each frame, fine ones if they come in time"""

import json
import socket
import sys
import time

TIMEOUT_S = 0.15


def ask(port, request):
    """The size of the map in bytes, or None when it does not come in time"""
    body = json.dumps(request).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    deadline, received = time.monotonic() + TIMEOUT_S, b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head + body)
        try:
            while b"\r\n\r\n" not in received:
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                part = connection.recv(1 << 16)
                if not part:
                    return None
                received += part
            head, _, rest = received.partition(b"\r\n\r\n")
            missing = int(head.split(b"Content-Length: ")[1]) - len(rest)
            size = len(rest)
            connection.settimeout(None)
            while missing > 0:
                count = len(connection.recv(min(missing, 1 << 20)))
                missing, size = missing - count, size + count
        except TimeoutError:
            return None
    return size


def main():
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    end, frame, fine, late = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end:
        coarse = ask(port, {"image": frame, "size": 256})
        size = ask(port, {"image": frame, "size": 896})
        fine += size is not None
        late += (size is None) + (coarse is None)
        frame += 1
        if frame % 20 == 0:
            print(f"{frame} frames, {fine} fine maps, {late} too late", flush=True)


if __name__ == "__main__":
    main()
