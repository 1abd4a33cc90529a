"""A replay buffer that is filled row by row (lazy), or was touched when it was made (touched)."""

import sys
import time

import numpy

ROWS, ROW = 600, 1 << 20

if __name__ == "__main__":
    buffer = numpy.zeros((ROWS, ROW), numpy.uint8)
    if sys.argv[1] == "touched":
        buffer.fill(0)
    time.sleep(1.0)
    for row in range(ROWS):
        buffer[row] = row % 251
        time.sleep(float(sys.argv[2]) / ROWS)
