"""A client: asks for one completion after another"""

import json
import socket
import sys
import time

QUESTIONS = ("why is the sky blue", "name three rivers", "what is a monad", "write a haiku on memory")


def main():
    end, count = time.monotonic() + float(sys.argv[2]), 0
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as connection:
        answers = connection.makefile("rb")
        while time.monotonic() < end:
            request = {"prompt": QUESTIONS[count % len(QUESTIONS)], "count": 12}
            connection.sendall(json.dumps(request).encode() + b"\n")
            tokens = json.loads(answers.readline())["tokens"]
            count += 1
    print(f"{count} completions, the last ends with {tokens[-3:]}", flush=True)


if __name__ == "__main__":
    main()
