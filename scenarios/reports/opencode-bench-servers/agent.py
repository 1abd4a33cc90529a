"""The coding agent's command: starts its server, hands it the prompt, and prints what it has written"""

import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def start_server(state):
    server = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "serve.py"), state],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return int(server.stdout.readline())


def main():
    state, prompt = sys.argv[1:]
    port = start_server(state)
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream:
        stream.write(json.dumps({"prompt": prompt}).encode() + b"\n")
        stream.flush()
        answer = json.loads(stream.readline())
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
