"""Runs an analysis: publishes the chunks of a portfolio, and waits for their losses"""

import json
import socket
import sys
import time

CHUNKS, LARGEST, PATIENCE_S = 16, 5, 36.0


def main():
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        answers = connection.makefile()

        def ask(op, **arguments):
            connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            return json.loads(answers.readline())

        for chunk in range(CHUNKS):
            ask("publish", task={"chunk": chunk, "regions": 110 if chunk == LARGEST else 10})
        results = 0
        while results < CHUNKS and time.monotonic() - started < PATIENCE_S:
            results = ask("wait", count=CHUNKS, timeout=2.0)["results"]
            print(f"{results} of {CHUNKS} chunks", flush=True)
    if results < CHUNKS:
        print("the analysis is still running: given up", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
