"""A table of fragments: files of columns in pages, each with a footer, and a session that caches the footers"""

import collections
import json
import os
import struct
import sys

import numpy as np

COLUMNS, PAGES, PAGE_ROWS = 48, 16, 8
ROWS = PAGES * PAGE_ROWS
PAGE_BYTES = PAGE_ROWS * 4


class PageInfo:
    __slots__ = ("encoding", "buffers", "rows", "statistics")

    def __init__(self, page):
        self.encoding, self.buffers = page["encoding"], page["buffers"]
        self.rows, self.statistics = page["rows"], page["statistics"]


class ColumnInfo:
    def __init__(self, index, metadata):
        self.index = index
        self.pages = [PageInfo(page) for page in json.loads(metadata)]


class CachedFileMetadata:
    """What the footer of a file says, so that it is not read again with each take"""

    def __init__(self, path):
        with open(path, "rb") as file:
            file.seek(-8, os.SEEK_END)
            length = struct.unpack("<q", file.read(8))[0]
            file.seek(-8 - length, os.SEEK_END)
            footer = json.loads(file.read(length))
        self.file_schema = footer["schema"]
        self.file_buffers = footer["buffers"]
        self.num_rows = footer["rows"]
        self.column_metadatas = [column.encode() for column in footer["columns"]]
        self.column_infos = [ColumnInfo(index, metadata) for index, metadata in enumerate(self.column_metadatas)]

    def deep_size_of(self):
        size = sys.getsizeof(self)
        size += sum(sys.getsizeof(name) for name in self.file_schema)
        size += sum(sys.getsizeof(buffer) for buffer in self.file_buffers)
        return size


class MetadataCache:
    """Entries by their key, up to a capacity in bytes; those that were not used for the longest time go first"""

    def __init__(self, capacity):
        self.capacity, self.used = capacity, 0
        self.entries = collections.OrderedDict()

    def get_or_insert_with_key(self, key, load):
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        entry = load(key)
        weight = entry.deep_size_of()
        while self.entries and self.used + weight > self.capacity:
            _, oldest = self.entries.popitem(last=False)
            self.used -= oldest.deep_size_of()
        self.entries[key] = entry
        self.used += weight
        return entry


class Session:
    def __init__(self, metadata_cache_size=64 << 20):
        self.metadata_cache = MetadataCache(metadata_cache_size)


class Table:
    def __init__(self, folder, session=None):
        self.session = session or Session()
        self.fragments = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def take(self, fragment, rows):
        """Some rows of a fragment, with all of their columns"""
        path = self.fragments[fragment]
        metadata = self.session.metadata_cache.get_or_insert_with_key(path, CachedFileMetadata)
        taken = np.empty((len(rows), COLUMNS), np.float32)
        with open(path, "rb") as file:
            for column in metadata.column_infos:
                for place, row in enumerate(rows):
                    page = column.pages[row // PAGE_ROWS]
                    offset, size = page.buffers
                    values = np.frombuffer(os.pread(file.fileno(), size, offset), np.float32)
                    taken[place, column.index] = values[row % PAGE_ROWS]
        return taken


def write_fragments(folder, count):
    generator = np.random.default_rng(3)
    schema = [f"feature_{column}" for column in range(COLUMNS)]
    for number in range(count):
        values = generator.standard_normal((COLUMNS, PAGES, PAGE_ROWS), dtype=np.float32)
        lowest, highest = values.min(2).tolist(), values.max(2).tolist()
        columns = [
            json.dumps([
                {
                    "encoding": {"kind": "flat", "bits": 32, "nullable": False},
                    "buffers": [(column * PAGES + page) * PAGE_BYTES, PAGE_BYTES],
                    "rows": PAGE_ROWS,
                    "statistics": {"min": lowest[column][page], "max": highest[column][page]},
                }
                for page in range(PAGES)
            ])
            for column in range(COLUMNS)
        ]
        footer = json.dumps({"schema": schema, "buffers": [], "rows": ROWS, "columns": columns}).encode()
        with open(os.path.join(folder, f"{number:05d}.lance"), "wb") as file:
            file.write(values.tobytes() + footer + struct.pack("<q", len(footer)))
