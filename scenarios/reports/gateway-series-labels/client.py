"""Sends the requests of an application's end users, and scrapes the metrics every few seconds"""

import hashlib
import json
import random
import socket
import sys
import time

SECONDS, SCRAPE_S = 34.0, 5.0


def main():
    source = random.Random(1)
    started = scraped = time.monotonic()
    sent = 0
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        answers = connection.makefile()

        def call(request):
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(answers.readline())

        while time.monotonic() - started < SECONDS:
            sent += 1
            user = f"user-{sent:08d}"
            key = hashlib.sha256(user[:-1].encode()).hexdigest()
            prompt = [source.randrange(512) for _ in range(24)]
            request = {"path": "/chat/completions", "user": user, "key": key, "team": f"team-{sent % 40}"}
            call({**request, "model": "gpt-4o-mini", "prompt": prompt})
            if time.monotonic() - scraped > SCRAPE_S:
                answer = call({"path": "/metrics"})
                scraped = time.monotonic()
                print(f"{sent} requests; the scrape has {answer['bytes']} bytes", flush=True)


if __name__ == "__main__":
    main()
