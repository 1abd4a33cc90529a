"""Five sessions that append to their conversations; one of them pastes a document in its ninth turn"""

import argparse
import http.client
import json
import random
import sys
import threading
import time

BLOCK, PREFIX, TURN, DOCUMENT, TURNS, RETRIES = 16, 20, 6, 230, 14, 3


def ask(connection, request):
    connection.request("POST", "/v1/messages", json.dumps(request))
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def session(name, port, prefix, document_turn, failures):
    rng, connection = random.Random(name), http.client.HTTPConnection("127.0.0.1", port)
    for turn in range(TURNS):
        blocks = PREFIX if turn == 0 else DOCUMENT if turn == document_turn else TURN
        tokens = rng.choices(range(4000), k=blocks * BLOCK)
        for attempt in range(RETRIES):
            status, answer = ask(connection, {"session": name, "prefix": prefix, "tokens": tokens})
            if status == 200:
                break
            print(f"{name}, turn {turn}: {status} {answer['error']}", flush=True)
            time.sleep(1.0 + attempt)
        else:
            failures.append(name)
            return
        if turn % 4 == 0:
            print(f"{name}, turn {turn}: {answer}", flush=True)
    connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    with open(parser.parse_args().port_file) as file:
        port = int(file.read())
    failures = []
    shapes = [("agent-1", "tools", None), ("agent-2", "tools", None), ("agent-3", "tools", None)]
    shapes += [("agent-4", "tools", None), ("reader", "plain", 8)]
    threads = [threading.Thread(target=session, args=(n, port, p, turn, failures)) for n, p, turn in shapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(failures)} of {len(threads)} sessions failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
