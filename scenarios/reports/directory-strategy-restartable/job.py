"""Mirrors the groups of a directory: asks for the members of each group, and stores them compressed"""

import os
import subprocess
import sys
import time
import zlib

import numpy as np

from strategy import Connection

SECONDS, GROUPS = 27.0, 400


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    directory = subprocess.Popen([sys.executable, os.path.join(here, "directory.py")], stdout=subprocess.PIPE)
    connection = Connection(("127.0.0.1", int(directory.stdout.readline())))
    end, number, stored = time.monotonic() + SECONDS, 0, 0
    with open("mirror.bin", "wb") as mirror:
        while time.monotonic() < end:
            members = np.frombuffer(connection.search("ou=groups", number % GROUPS), np.uint32)
            unique = np.unique(members)
            packed = zlib.compress(np.diff(unique, prepend=0).astype(np.uint16).tobytes(), 6)
            mirror.seek(0)
            mirror.write(packed)
            stored += len(packed)
            number += 1
            if number % 50 == 0:
                print(f"{number} groups, {len(unique)} members, {stored >> 20} MiB stored", flush=True)
    connection.strategy.close()
    directory.terminate()
    directory.wait()
    os.unlink("mirror.bin")
    print(f"{number} groups, {len(connection.strategy.exception_history)} restarts", flush=True)


if __name__ == "__main__":
    main()
