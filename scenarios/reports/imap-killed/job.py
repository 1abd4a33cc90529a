"""Preprocessing: Pool.imap encodes faster than one writer writes, in a cgroup with a limit."""

import multiprocessing
import sys
import time


def encode(document):
    return [document * 31 + n for n in range(6000)]


if __name__ == "__main__":
    pool = multiprocessing.Pool(2)
    with open("/dev/null", "wb") as out:
        for ids in pool.imap(encode, range(200_000), 25):
            out.write(b"".join(n.to_bytes(8, "little") for n in ids))
            # The disk.
            time.sleep(0.01)
    sys.exit(0)
