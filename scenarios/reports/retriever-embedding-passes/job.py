"""Fills a knowledge base over its gateway, and then again, after a change of what goes before each document"""

import json
import os
import random
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENTS, BATCH, PASSES, BATCH_S = 768, 48, 4, 0.45


def documents():
    """From the oldest to the newest; they have become longer over the years"""
    source = random.Random(4)
    for number in range(DOCUMENTS):
        words = 30 + 210 * number // DOCUMENTS + source.randrange(10)
        yield {"id": number, "text": " ".join(f"w{source.randrange(30_000)}" for _ in range(words))}


class Client:
    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.stream = self.connection.makefile("rwb")

    def ask(self, **request):
        self.stream.write(json.dumps(request).encode() + b"\n")
        self.stream.flush()
        return json.loads(self.stream.readline())


def main():
    command = [sys.executable, os.path.join(HERE, "gateway.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
        client, known = Client(int(gateway.stdout.readline())), list(documents())
        begin, batches, searches = time.monotonic(), 0, 0
        for number in range(PASSES):
            for at in range(0, DOCUMENTS, BATCH):
                part = [{"id": one["id"], "text": f"pass{number} {one['text']}"} for one in known[at : at + BATCH]]
                answer = client.ask(method="index", documents=part)
                batches += 1
                # Readers search while the next documents are prepared
                while time.monotonic() < begin + batches * BATCH_S:
                    client.ask(method="search", query=f"w{searches} w{7 * searches} of pass {number}")
                    searches += 1
            print(
                f"pass {number}: {DOCUMENTS} documents, {searches} searches, workspace {answer['workspace']} MiB",
                flush=True,
            )
        gateway.terminate()
    return gateway.returncode


if __name__ == "__main__":
    sys.exit(main())
