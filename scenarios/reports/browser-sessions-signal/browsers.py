"""Opens the page, moves a slider once, looks at the charts and closes the page, again and again"""

import json
import socket
import sys
import time
import zlib

SECONDS = 38.0


def receive(stream):
    """The elements of one run of the script"""
    elements = []
    while size := int.from_bytes(stream.read(4), "big"):
        elements.append(json.loads(zlib.decompress(stream.read(size))))
    return elements


def visit(port, number):
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as stream:
        for turn in range(2 if number % 4 == 0 else 1):
            widgets = {"column": (number + turn) % 8, "from": 0.1 * (number % 6)}
            connection.sendall(json.dumps(widgets).encode() + b"\n")
            elements = receive(stream)
    return elements


def main():
    port, started, number = int(sys.argv[1]), time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        elements = visit(port, number)
        number += 1
        if number % 25 == 0:
            print(f"page {number}: {elements[0]['value']} rows, {len(elements) - 1} charts", flush=True)
    print(f"{number} pages", flush=True)


if __name__ == "__main__":
    main()
