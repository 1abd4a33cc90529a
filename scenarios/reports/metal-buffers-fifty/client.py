"""A client that sends prompts of all lengths, one after another"""

import json
import random
import socket
import sys

source = random.Random(8)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection, connection.makefile("rb") as answers:
    while True:
        tokens = [source.randrange(4000) for _ in range(source.randrange(900, 2600))]
        try:
            connection.sendall(json.dumps({"prompt": tokens}).encode() + b"\n")
        except OSError:
            break
        if not answers.readline():
            break
