"""Sends the units of a build to a build host, two at a time, and keeps what comes back"""

import concurrent.futures
import hashlib
import os
import random
import socket
import subprocess
import sys
import time

UNITS, UNIT_BYTES = 900, 6_500_000
LASTS_S = 70


def source_text():
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz_", k=rng.randint(3, 11))) for _ in range(3000)]
    text = " ".join(rng.choices(words, k=UNIT_BYTES // 7))
    return text.encode()


def compile_on_host(port, number, text):
    """The unit's object: its length first, then its bytes"""
    cut = number * 1009 % len(text)
    unit = text[cut:] + text[:cut]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(len(unit).to_bytes(8, "little") + unit)
        stream = connection.makefile("rb")
        head = stream.read(8)
        if len(head) < 8:
            raise ConnectionError(f"unit {number}: no result from the host")
        built = stream.read(int.from_bytes(head, "little"))
    with open(f"unit-{number}.o", "wb") as file:
        file.write(built[:4096])
    return hashlib.sha256(built).hexdigest()


def main():
    host = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host.py")
    server = subprocess.Popen([sys.executable, host], stdout=subprocess.PIPE, text=True)
    port, text = int(server.stdout.readline()), source_text()
    until, built, status = time.monotonic() + LASTS_S, 0, 0
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            for first in range(0, UNITS, 2):
                jobs = [executor.submit(compile_on_host, port, first + i, text) for i in range(2)]
                built += len([job.result() for job in jobs])
                if time.monotonic() > until:
                    break
    except OSError as error:
        print(f"build failed after {built} units: {error}", flush=True)
        status = 1
    server.terminate()
    server.wait()
    server.stdout.close()
    sys.exit(status)


if __name__ == "__main__":
    main()
