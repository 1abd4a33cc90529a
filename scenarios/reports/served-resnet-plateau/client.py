"""Sends pictures of all sizes, and more of them at a time as the day goes on."""

import os
import socket
import struct
import sys
import time

SECONDS = 30


def receive(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


start, pictures, request = time.monotonic(), 0, 0
noise = os.urandom(1 << 20) * 9
while (elapsed := time.monotonic() - start) < SECONDS:
    number = min(1 + int(elapsed), 8)
    side = 240 + request * 37 % 360
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(struct.pack("3i", number, side, side))
        connection.sendall(noise[: number * side * side * 3])
        receive(connection, 4 * number)
    pictures += number
    request += 1
    if request % 20 == 0:
        print(f"{request} requests, {pictures} pictures", flush=True)
