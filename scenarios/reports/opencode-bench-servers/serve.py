"""The coding agent's server: it loads the index of its tools and documents, and then answers on a port"""

import hashlib
import json
import os
import socket
import sys
import time

import numpy as np

PASSAGES, WIDTH, ANSWER_S = 52_000, 192, 0.5


class Session:
    def __init__(self, index):
        self.index = index

    def prompt(self, text):
        until = time.monotonic() + ANSWER_S
        digest, steps = text.encode(), 0
        while time.monotonic() < until:
            digest = hashlib.sha256(digest).digest()
            query = np.frombuffer(digest * 6, np.uint8).astype(np.float32)
            best, steps = int((self.index @ query).argmax()), steps + 1
        name = text.rpartition(" ")[2]
        return {"code": f"def {name}(values):\n    return sorted(values)[-1]\n", "passage": best, "steps": steps}


def main():
    state = sys.argv[1]
    with open(os.path.join(state, f"{os.getpid()}.pid"), "w") as file:
        file.write(str(os.getpid()))
    index = np.random.default_rng(0).standard_normal((PASSAGES, WIDTH), np.float32)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            session = Session(index)
            for line in stream:
                stream.write(json.dumps(session.prompt(json.loads(line)["prompt"])).encode() + b"\n")
                stream.flush()


if __name__ == "__main__":
    main()
