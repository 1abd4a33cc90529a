"""A dataset of 70,000 small files: each is memory-mapped when it is loaded, and all are kept to be concatenated."""

import hashlib
import os
import struct
import tempfile

import numpy as np
import torch

FILES = 70_000
ROWS = 64


class MemoryMappedTable:
    """One file's columns; the mapping lives as long as the table does."""

    def __init__(self, path):
        self.path = path
        self.table = torch.from_file(path, shared=False, size=ROWS, dtype=torch.float32)

    def fingerprint(self):
        digest = hashlib.sha256()
        for column in np.array_split(self.table.numpy(), 8):
            digest.update(column.tobytes() * 140)
        return digest.hexdigest()


class ConcatenationTable:
    def __init__(self, tables):
        self.tables = tables

    def __len__(self):
        return ROWS * len(self.tables)


def save_to_disk(directory):
    for n in range(FILES):
        if n % 1000 == 0:
            os.mkdir(os.path.join(directory, f"part-{n // 1000:03}"))
        with open(os.path.join(directory, f"part-{n // 1000:03}", f"{n:05}.arrow"), "wb") as f:
            f.write(struct.pack("f", n) * ROWS)


def load_from_disk(directory):
    tables, seen = [], set()
    for part in sorted(os.listdir(directory)):
        folder = os.path.join(directory, part)
        for name in sorted(os.listdir(folder)):
            table = MemoryMappedTable(os.path.join(folder, name))
            seen.add(table.fingerprint()[:8])
            tables.append(table)
        print(part, len(tables), len(seen), flush=True)
    return ConcatenationTable(tables)


def main():
    with tempfile.TemporaryDirectory(prefix="datasets-") as directory:
        save_to_disk(directory)
        print("saved", flush=True)
        dataset = load_from_disk(directory)
        print("rows", len(dataset))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
