"""The shuffle: a writer that sorts what it has buffered and flushes it as a run, and a merge of such runs"""

import heapq
import os

import numpy as np

ROW = np.dtype([("bucket", "<u8"), ("document", "<u8"), ("signature", "<u4", (28,))])
FLUSH_SHARE, FAN_IN, BLOCK = 0.2, 4, 20_000


class ScatterWriter:
    """Rows of one shard; they go to disk when they take their share of the task's memory"""

    def __init__(self, folder, shard, task_memory_bytes):
        self.folder, self.shard = folder, shard
        self.flush_bytes = int(task_memory_bytes * FLUSH_SHARE)
        self.buffered, self.size, self.runs = [], 0, []

    def add(self, rows):
        self.buffered.append(rows)
        self.size += rows.nbytes
        if self.size >= self.flush_bytes:
            self.flush()

    def flush(self):
        if not self.buffered:
            return
        frame = np.concatenate(self.buffered)
        ordered = frame[np.argsort(frame["bucket"], kind="stable")]
        path = os.path.join(self.folder, f"shard{self.shard}-run{len(self.runs)}")
        ordered.tofile(path)
        self.runs.append(path)
        self.buffered, self.size = [], 0


def blocks(path):
    with open(path, "rb") as file:
        while data := file.read(BLOCK * ROW.itemsize):
            yield np.frombuffer(data, ROW)


def merge(paths):
    """Sorted blocks of all rows of some sorted runs"""
    readers = [blocks(path) for path in paths]
    heads = [next(reader, None) for reader in readers]
    while any(head is not None for head in heads):
        # Everything up to the smallest last bucket is complete
        bound = min(head["bucket"][-1] for head in heads if head is not None)
        parts = []
        for number, head in enumerate(heads):
            if head is None:
                continue
            cut = int(np.searchsorted(head["bucket"], bound, "right"))
            parts.append(head[:cut])
            heads[number] = head[cut:] if cut < len(head) else next(readers[number], None)
        rows = np.concatenate(parts)
        yield rows[np.argsort(rows["bucket"], kind="stable")]


def merged_runs(folder, paths, name):
    """Merges in passes of a few runs each, until one pass can take the rest"""
    paths, count = sorted(paths, key=os.path.getsize), 0
    heapq.heapify(paths)
    while len(paths) > FAN_IN:
        group = [heapq.heappop(paths) for _ in range(FAN_IN)]
        path = os.path.join(folder, f"{name}-pass{count}")
        with open(path, "wb") as file:
            for rows in merge(group):
                rows.tofile(file)
        for done in group:
            os.remove(done)
        heapq.heappush(paths, path)
        count += 1
    return merge(paths), count
