"""Generates a data set of rated texts from a JSON file that is read in chunks"""

import json
import random
import sys
import time

import numpy as np
import pyarrow as pa

from writer import ArrowWriter, DatasetGenerationError

UNCOMMENTED_S, SECONDS, CHUNK_S = 24.0, 40.0, 0.4
RECORDS, WORDS, BUCKETS = 1500, 120, 512
SYLLABLES = ["ba", "con", "dri", "el", "fo", "gan", "hu", "is", "jo", "kle", "lan", "mo"]


class Export:
    """The lines of the export; in its later part some of the raters have left a comment"""

    def __init__(self):
        self.chooser = random.Random(0)
        self.words = ["".join(self.chooser.choices(SYLLABLES, k=3)) for _ in range(1500)]
        self.number = 0

    def read(self, commented):
        lines = []
        for _ in range(RECORDS):
            record = {
                "id": self.number,
                "text": " ".join(self.chooser.choices(self.words, k=WORDS)),
                "rating": self.chooser.randrange(1, 6),
                "comment": None,
            }
            if commented and self.number % 40 == 0:
                record["comment"] = " ".join(self.chooser.choices(self.words, k=8))
            lines.append(json.dumps(record))
            self.number += 1
        return "\n".join(lines)


def sketch(texts, projection, until):
    """A short vector of each text, refined for the time of a chunk"""
    counts = np.zeros((len(texts), BUCKETS), np.float32)
    for row, text in enumerate(texts):
        np.add.at(counts[row], [(31 * len(word) + ord(word[0])) % BUCKETS for word in text.split()], 1.0)
    while True:
        vectors = counts @ projection
        projection += 1e-6 * counts.T @ np.tanh(vectors)
        if time.monotonic() > until:
            return vectors


def main():
    export = Export()
    projection = np.random.default_rng(0).standard_normal((BUCKETS, 16)).astype(np.float32) / 16.0
    writer = ArrowWriter("ratings-train.arrow")
    started, chunks = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        until = time.monotonic() + CHUNK_S
        lines = export.read(commented=time.monotonic() - started > UNCOMMENTED_S)
        records = [json.loads(line) for line in lines.split("\n")]
        vectors = sketch([record["text"] for record in records], projection, until)
        for record, vector in zip(records, vectors):
            record["vector"] = vector.tolist()
        try:
            writer.write_table(pa.Table.from_pylist(records))
        except (TypeError, pa.ArrowInvalid) as error:
            raise DatasetGenerationError("An error occurred while generating the dataset") from error
        chunks += 1
        if chunks % 15 == 0:
            print(f"{chunks} chunks, {writer.rows} rows", flush=True)
    writer.close()
    print(f"{writer.rows} rows", flush=True)


if __name__ == "__main__":
    sys.exit(main())
