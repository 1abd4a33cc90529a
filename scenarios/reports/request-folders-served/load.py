"""A load test: some users send images to the service, each as soon as it has its answer"""

import collections
import concurrent.futures
import json
import random
import socket
import sys
import time

RUN_S, USERS, IMAGE = 30.0, 6, 3 * 1024 * 1024


def user(number, port):
    draw, words = random.Random(number), collections.Counter()
    image = bytearray(draw.randbytes(IMAGE))
    end = time.monotonic() + RUN_S
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        while time.monotonic() < end:
            image[draw.randrange(IMAGE)] = draw.randrange(256)
            connection.sendall(b"%d\n" % len(image))
            connection.sendall(image)
            words[json.loads(answers.readline())["word"]] += 1
    return words


def main():
    with concurrent.futures.ThreadPoolExecutor(USERS) as users:
        found = list(users.map(user, range(USERS), [int(sys.argv[1])] * USERS))
    print(f"{sum(sum(words.values()) for words in found)} answers", flush=True)


if __name__ == "__main__":
    main()
