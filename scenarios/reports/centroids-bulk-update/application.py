"""Queries the index all the time from two threads, adds a few documents now and then, and a large batch at last"""

import concurrent.futures
import json
import socket
import sys
import time

SECONDS, UPDATE_EVERY_S, BULK_AT_S = 32.0, 3.0, 23.0


class Client:
    def __init__(self):
        self.connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        self.lines = self.connection.makefile("rb")

    def ask(self, **request):
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        line = self.lines.readline()
        if not line:
            raise ConnectionError(f"the API went away during a {request['kind']}")
        return json.loads(line)


def queries(worker, begin):
    client, asked = Client(), 0
    while time.monotonic() < begin + SECONDS:
        answer = client.ask(kind="query", seed=asked * 2 + worker)
        asked += 1
        if asked % 400 == 0:
            print(f"{asked} queries, best {answer['best'][0]}, {answer['centroids']} centroids", flush=True)
    return asked


def main():
    begin, client = time.monotonic(), Client()
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        asking = [executor.submit(queries, worker, begin) for worker in range(2)]
        number = 1
        while number * UPDATE_EVERY_S < BULK_AT_S:
            done, _ = concurrent.futures.wait(asking, number * UPDATE_EVERY_S - (time.monotonic() - begin))
            if done:
                break
            client.ask(kind="update", documents=6)
            number += 1
        else:
            client.ask(kind="update", documents=400)
        print(f"{sum(future.result() for future in asking)} queries answered", flush=True)


if __name__ == "__main__":
    main()
