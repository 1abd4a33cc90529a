"""What the cluster does with a container: it asks until it has started, and then the webhooks come"""

import json
import socket
import sys
import time

STARTUP_S, RUN_S, STEP_S = 24.0, 28.0, 0.05


def ask(port, path, event=None):
    body = b"" if event is None else json.dumps(event).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
        connection.sendall(f"{'GET' if event is None else 'POST'} {path} HTTP/1.0\r\n\r\n".encode() + body)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def started(port, begin):
    attempt = 0
    while time.monotonic() < begin + STARTUP_S:
        attempt += 1
        try:
            answer = ask(port, "/health")
        except (OSError, ValueError) as error:
            print(f"Startup probe failed: attempt {attempt}: {error}", flush=True)
        else:
            print(f"Started after {attempt} attempts: {answer}", flush=True)
            return True
    return False


def main():
    port, begin = int(sys.argv[1]), time.monotonic()
    if not started(port, begin):
        print("Container failed startup probe, will be restarted", flush=True)
        return 1
    number, workers, refused = 0, set(), 0
    while time.monotonic() < begin + RUN_S:
        asked = time.monotonic()
        try:
            workers.add(ask(port, "/webhook", {"title": f"Merge request {number} of the parser"})["worker"])
        except (OSError, ValueError):
            refused += 1
        number += 1
        # The next merge request comes when this one has been read
        while time.monotonic() < asked + STEP_S:
            json.dumps({"title": [number] * 500})
    print(f"{number} webhooks, {refused} refused, {len(workers)} workers", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
