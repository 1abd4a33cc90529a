"""Asks for pictures, and cancels every second of them once it has seen the first steps."""

import json
import random
import socket
import sys

PICTURES = 900


def ask(**request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = connection.makefile().readline()
    if not answer:
        print(f"no answer to {request}", file=sys.stderr)
        sys.exit(1)
    return json.loads(answer)


random.seed(3)
made = cancelled = 0
for number in range(PICTURES):
    name = f"picture-{number}"
    ask(do="create", name=name)
    last = random.randrange(1, 4) if number % 2 == 0 else None
    while True:
        step = ask(do="progress", name=name)
        if step == "done":
            made += 1
            break
        if step == last:
            ask(do="cancel", name=name)
            cancelled += 1
            break
    if number % 20 == 0:
        print(f"{made} pictures, {cancelled} cancelled", flush=True)
