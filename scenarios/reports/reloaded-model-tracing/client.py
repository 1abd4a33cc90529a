"""Asks the server for predictions, one group after the other, and stops at the first that fails"""

import http.client
import json
import random
import sys
import time

RUN_S, ROWS, WIDTH = 60.0, 32, 96


def main():
    draw, answered, end = random.Random(0), 0, time.monotonic() + RUN_S
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    while time.monotonic() < end:
        rows = [[round(draw.uniform(-1, 1), 3) for _ in range(WIDTH)] for _ in range(ROWS)]
        connection.request("POST", "/invocations", json.dumps(rows))
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            print(f"{response.status} after {answered} answers: {body.decode()}", flush=True)
            return 1
        answered += 1
        if answered % 50 == 0:
            print(f"{answered} answers", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
