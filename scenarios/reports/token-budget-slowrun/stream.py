"""Stands in for the streamed dataset: writes documents to the standard output, a line of JSON for each"""

import json
import random
import select
import sys
import time

RATE = 21


def main():
    numbers = random.Random(5)
    words = ["".join(numbers.choices("etaoinshrdlucmfwypvbgk", k=numbers.randint(2, 9))) for _ in range(8000)]
    start, number = time.monotonic(), 0
    try:
        while True:
            text = " ".join(numbers.choices(words, k=numbers.randint(4000, 9000)))
            sys.stdout.write(json.dumps({"id": number, "text": text}) + "\n")
            sys.stdout.flush()
            number += 1
            wait = start + number / RATE - time.monotonic()
            if wait > 0:
                select.select([], [], [], wait)
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
