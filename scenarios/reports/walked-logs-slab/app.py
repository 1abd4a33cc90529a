"""An application: marks the parts of a large job in its volume, then works on them and logs what it does"""

import argparse
import os
import random
import time
import zlib

PARTS, IN_FOLDER, MARK_S = 110_000, 500, 10.5
LOG_BYTES, LOGS_KEPT = 200_000, 3


class RotatingLog:
    def __init__(self, folder):
        self.path = os.path.join(folder, "app.log")
        self.file = open(self.path, "a")

    def write(self, line):
        self.file.write(line + "\n")
        self.file.flush()
        if self.file.tell() >= LOG_BYTES:
            self.rotate()

    def rotate(self):
        self.file.close()
        for number in range(LOGS_KEPT - 1, 0, -1):
            older = f"{self.path}.{number}"
            newer = self.path if number == 1 else f"{self.path}.{number - 1}"
            if os.path.exists(newer):
                os.replace(newer, older)
        self.file = open(self.path, "a")


def mark_parts(folder, log):
    until, number = time.monotonic() + MARK_S, 0
    while number < PARTS and time.monotonic() < until:
        part = os.path.join(folder, f"shard-{number // IN_FOLDER:05d}")
        if number % IN_FOLDER == 0:
            os.mkdir(part)
            log.write(f"shard {number // IN_FOLDER} is planned")
        os.close(os.open(os.path.join(part, f"part-{number:08d}.todo"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        number += 1
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    began, log, source = time.monotonic(), RotatingLog(arguments.folder), random.Random(1)
    marked = mark_parts(arguments.folder, log)
    print(f"{marked} parts", flush=True)
    rows = source.randbytes(60_000).hex().encode()
    done = 0
    while time.monotonic() - began < arguments.seconds:
        packed = zlib.compress(rows[done % 997 :], 6)
        level = "ERROR" if source.random() < 0.02 else "INFO"
        log.write(f"{level} part {done % marked} has {len(packed)} bytes, checksum {zlib.crc32(packed):08x}")
        done += 1
    print(f"{done} parts are done", flush=True)


if __name__ == "__main__":
    main()
