"""Sends one long request, and short ones in a closed loop, to the scheduler"""

import random
import socket
import struct
import sys
import time

RUN_S, SHORT = 31.0, 15
REQUEST = struct.Struct("<III")
ANSWER = struct.Struct("<IIf")


def main():
    draw, number = random.Random(3), 0
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:

        def send(length):
            nonlocal number
            connection.sendall(REQUEST.pack(number, draw.randrange(4000), length))
            number += 1

        send(32_000)
        for _ in range(SHORT):
            send(draw.randrange(20, 60))
        end, answered = time.monotonic() + RUN_S, 0
        while time.monotonic() < end:
            answer = connection.recv(ANSWER.size, socket.MSG_WAITALL)
            finished, tokens, norm = ANSWER.unpack(answer)
            answered += 1
            send(draw.randrange(20, 60))
            if answered % 50 == 0:
                print(f"{answered} answers, request {finished}: {tokens} tokens, norm {norm:.2f}", flush=True)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


if __name__ == "__main__":
    main()
