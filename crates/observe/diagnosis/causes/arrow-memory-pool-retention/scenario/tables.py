"""Computes columns of Arrow tables, each table larger than the one before, and keeps none of them: `tables.py SECONDS`."""

import sys
import time

import numpy
import pyarrow
import pyarrow.compute

MOST = 50_000_000  # rows

if __name__ == "__main__":
    seconds = float(sys.argv[1])
    column = pyarrow.array(numpy.arange(MOST // 8, dtype=numpy.float64))
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        part = max((time.monotonic() - began) / seconds, 0.05)
        rows = column.slice(0, int(len(column) * part))
        table = [pyarrow.compute.add(rows, float(number)) for number in range(8)]
        del table
        if sys.argv[2:] == ["release"]:
            pyarrow.default_memory_pool().release_unused()
        time.sleep(0.5)
    print(pyarrow.total_allocated_bytes(), "bytes in use at the end")
