"""Lists the files of a bucket with the checksum of each."""

import argparse
import hashlib
import random
import zlib


def checksum(number):
    content = random.Random(number).randbytes(100_000)
    return hashlib.sha1(zlib.compress(content, 1)).hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    for number in range(parser.parse_args().count):
        name = f"4_z{number:012x}  upload  2025-02-{1 + number % 28:02}"
        print(f"{name}  sha1:{checksum(number)}  file-{number}", flush=True)


if __name__ == "__main__":
    main()
