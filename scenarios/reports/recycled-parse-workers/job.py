"""An ingest pool whose parsers hoard pages; maxtasksperchild replaces each worker before it matters."""

import collections
import time
from multiprocessing import Pool

import numpy as np

WORKER_MAX_TASKS = 24
_converter = None


class Converter:
    """A parser with the habits of a big library: it remembers layouts of every document that it has seen."""

    def __init__(self):
        self.layouts = collections.defaultdict(list)
        self.kernel = np.hanning(33)

    def convert(self, document_id):
        rng = np.random.default_rng(document_id)
        words = 0
        for page in range(6):
            image = rng.random((760, 560), np.float32)
            smooth = np.apply_along_axis(lambda row: np.convolve(row, self.kernel, "same"), 1, image[::4])
            self.layouts[document_id].append((page, image, smooth.mean(1)))
            words += int((smooth > smooth.mean()).sum() // 1000)
        return document_id, words


def _init_worker():
    global _converter
    _converter = Converter()
    _converter.convert(0)  # warm-up


def parse_one(document_id):
    time.sleep(0.02)  # the download
    return _converter.convert(document_id)


def main():
    began, words = time.monotonic(), 0
    with Pool(2, initializer=_init_worker, maxtasksperchild=WORKER_MAX_TASKS) as pool:
        for n, (document_id, found) in enumerate(pool.imap_unordered(parse_one, range(1, 460), chunksize=1)):
            words += found
            if n % 40 == 0:
                print(f"{n} documents, {words} words, {time.monotonic() - began:.0f} s", flush=True)
        pool.close()
        pool.join()


if __name__ == "__main__":
    main()
