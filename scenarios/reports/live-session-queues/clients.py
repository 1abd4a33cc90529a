"""Clients of the live transcription, each with a recording that it sends faster than it would be played"""

import select
import socket
import sys
import threading
import time

import numpy as np

RATE, LENGTH_S, SPEED = 16_000, 360, 30


def send(path, number):
    numbers = np.random.default_rng(number)
    speech = (2000 * numbers.standard_normal(20 * RATE)).astype(np.int16)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        due = time.monotonic()
        for second in range(LENGTH_S):
            first = second % 20 * RATE
            connection.sendall(speech[first : first + RATE].tobytes())
            due = max(due + 1 / SPEED, time.monotonic())
            select.select([], [], [], due - time.monotonic() if due > time.monotonic() else 0)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def main():
    threads = [threading.Thread(target=send, args=(sys.argv[1], number)) for number in range(int(sys.argv[2]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
