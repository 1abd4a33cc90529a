"""Streams audio to the transcription server and prints what comes back"""

import argparse
import socket
import struct
import sys

import numpy as np

RATE, CHUNK = 16_000, 8_000


def chunk(number):
    times = np.arange(number * CHUNK, (number + 1) * CHUNK) / RATE
    tone = np.sin(2 * np.pi * (220 + 40 * np.sin(times)) * times)
    return (tone * 12_000).astype(np.int16).tobytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--cut", type=int, help="the link goes down behind so many chunks")
    parser.add_argument("--last", action="store_true")
    options = parser.parse_args()
    try:
        connection = socket.create_connection(("127.0.0.1", options.port))
    except ConnectionRefusedError:
        sys.exit("microphone: the server does not answer")
    with connection, connection.makefile("r") as results:
        for number in range(options.chunks):
            if number == options.cut:
                connection.sendall(chunk(number)[:CHUNK])
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            connection.sendall(chunk(number))
            line = results.readline().split()
            if number % 10 == 9:
                print(f"{line[0]} {line[1]} {line[2]}", flush=True)


if __name__ == "__main__":
    main()
