"""Reads rows and keeps every thousandth: as objects, or in columns (columns)."""

import array
import sys
import time

ROWS = 900_000


def read():
    for number in range(ROWS):
        yield {"id": number, "text": str(number)}


if __name__ == "__main__":
    time.sleep(1.5)
    if sys.argv[1] == "objects":
        rows = list(read())
        for _ in range(10):
            time.sleep(0.2)
        kept = rows[::1000]
        del rows
    else:
        kept = array.array("l", (row["id"] for row in read()))
    for _ in range(40):
        time.sleep(0.2)
