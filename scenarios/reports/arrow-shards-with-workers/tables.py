"""Tables on disk, each a mapped file of record batches: offsets, then the bytes of all rows."""

import mmap
import os

import numpy as np


def write_table(path, batches, rows, seed):
    """Rows of 12 to 36 KiB; an index of the batches is at the end."""
    rng = np.random.default_rng(seed)
    starts = []
    with open(path, "wb") as file:
        for _ in range(batches):
            starts.append(file.tell())
            ends = np.cumsum(rng.integers(12 << 10, 36 << 10, rows)).astype(np.int64)
            file.write(np.int64(rows).tobytes() + ends.tobytes())
            file.write(rng.integers(32, 127, int(ends[-1]), np.uint8).tobytes())
        index = np.array([*starts, file.tell()], np.int64)
        file.write(index.tobytes() + np.int64(len(index)).tobytes())


class RecordBatch:
    def __init__(self, view):
        rows = int(np.frombuffer(view[:8], np.int64)[0])
        self.ends = np.frombuffer(view[8 : 8 + 8 * rows], np.int64)
        self.data = view[8 + 8 * rows :]

    def __len__(self):
        return len(self.ends)

    def row(self, i):
        start = int(self.ends[i - 1]) if i else 0
        return self.data[start : int(self.ends[i])]


class MappedTable:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.mapping = mmap.mmap(file.fileno(), os.path.getsize(path), mmap.MAP_SHARED, mmap.PROT_READ)
        view = memoryview(self.mapping)
        count = int(np.frombuffer(view[-8:], np.int64)[0])
        index = np.frombuffer(view[-8 - 8 * count : -8], np.int64)
        self.batches = [RecordBatch(view[int(a) : int(b)]) for a, b in zip(index, index[1:])]


class TextDataset:
    """Rows of all tables; a row becomes ids when it is asked for."""

    def __init__(self, paths):
        self.places = []
        self.tables = [MappedTable(path) for path in paths]
        for t, table in enumerate(self.tables):
            for b, batch in enumerate(table.batches):
                self.places.extend((t, b, i) for i in range(len(batch)))
        self.places = np.array(self.places, np.int32)

    def __len__(self):
        return len(self.places)

    def text(self, i):
        table, batch, row = self.places[i]
        return bytes(self.tables[table].batches[batch].row(int(row)))
