"""Chat sessions behind a gateway: two wait for their answers, two have a deadline and try again with more context"""

import argparse
import json
import random
import socket
import threading
import time

LASTS_S = 28
WORDS = 16000


def prompt_of(rng, words):
    start = rng.randrange(WORDS)
    return " ".join(words[start:] + words[:start])


def ask(port, prompt, deadline):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(json.dumps({"prompt": prompt, "params": {"max_tokens": 8}}).encode() + b"\n")
        connection.settimeout(deadline)
        return connection.recv(4096)


def session(port, seed, deadline, counts, until):
    rng = random.Random(seed)
    words = [f"tok{rng.randrange(8192):04d}" for _ in range(WORDS)]
    while time.monotonic() < until:
        try:
            counts["answered" if ask(port, prompt_of(rng, words), deadline) else "closed"] += 1
        except TimeoutError:
            counts["deadline"] += 1
        except ConnectionError:
            counts["closed"] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    with open(parser.parse_args().port_file) as file:
        port = int(file.read())
    until = time.monotonic() + LASTS_S
    counts = {"answered": 0, "deadline": 0, "closed": 0}
    deadlines = [60, 60, 0.03, 0.03]
    threads = [
        threading.Thread(target=session, args=(port, seed, deadline, counts, until))
        for seed, deadline in enumerate(deadlines)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(counts, flush=True)


if __name__ == "__main__":
    main()
