"""A late-interaction index: centroids, and the code and residual of each token, in files that are mapped for queries"""

import json
import os

import numpy as np
from numpy.lib import format as npy

WIDTH = 128


def write_array(path, blocks, rows, dtype, width):
    """A .npy file from its blocks, as they are computed"""
    with open(path, "wb") as file:
        npy.write_array_header_1_0(
            file, {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (rows, width)}
        )
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).tobytes())
            file.flush()


def normalized(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class MappedIndex:
    """What a query needs, as it was when the index was loaded"""

    def __init__(self, folder):
        with open(os.path.join(folder, "metadata.json")) as file:
            self.metadata = json.load(file)
        self.centroids = np.load(os.path.join(folder, "centroids.npy"), mmap_mode="r")
        self.chunks = [
            (
                np.load(os.path.join(folder, f"{chunk}.codes.npy"), mmap_mode="r"),
                np.load(os.path.join(folder, f"{chunk}.residuals.npy"), mmap_mode="r"),
            )
            for chunk in range(self.metadata["chunks"])
        ]

    def search(self, tokens, top=3):
        scores = self.centroids @ tokens.T
        probed = np.unique(np.argpartition(scores, -2, axis=0)[-2:])
        found = []
        for number, (codes, residuals) in enumerate(self.chunks):
            rows = np.flatnonzero(np.isin(codes[:, 0], probed))[:400]
            if len(rows):
                vectors = self.centroids[codes[rows, 0]] + (residuals[rows].astype(np.float32) - 128) / 512
                best = (vectors @ tokens.T).max(1)
                found.append((float(best.max()), number, int(rows[best.argmax()])))
        return sorted(found, reverse=True)[:top]


class Writer:
    """The files of the index; one update at a time"""

    def __init__(self, folder, centroids, seed=0):
        self.folder, self.random = folder, np.random.default_rng(seed)
        self.metadata = {"chunks": 0, "centroids": centroids}
        first = (normalized(self.random.normal(size=(512, WIDTH))) for _ in range(centroids // 512))
        write_array(os.path.join(folder, "centroids.npy"), first, centroids, np.float32, WIDTH)
        self.save_metadata()

    def save_metadata(self):
        path = os.path.join(self.folder, "metadata.json")
        with open(path + ".new", "w") as file:
            json.dump(self.metadata, file)
        os.replace(path + ".new", path)

    def append(self, documents):
        """A chunk file for the tokens of the documents"""
        centroids = np.load(os.path.join(self.folder, "centroids.npy"))
        chunk, rows = self.metadata["chunks"], 200 * documents
        codes, residuals = [], []
        for _ in range(documents):
            tokens = normalized(self.random.normal(size=(200, WIDTH)).astype(np.float32))
            codes.append((tokens @ centroids.T).argmax(1)[:, None])
            residuals.append(((tokens - centroids[codes[-1][:, 0]]) * 512 + 128).clip(0, 255))
        write_array(os.path.join(self.folder, f"{chunk}.codes.npy"), codes, rows, np.int32, 1)
        write_array(os.path.join(self.folder, f"{chunk}.residuals.npy"), residuals, rows, np.uint8, WIDTH)
        self.metadata["chunks"] += 1
        self.save_metadata()

    def expand_centroids(self, added):
        """Centroids for tokens far from all others; the old ones are fitted to what they got meanwhile"""
        path = os.path.join(self.folder, "centroids.npy")
        old = np.load(path)
        outliers = normalized(self.random.normal(size=(8 * added, WIDTH)).astype(np.float32))

        def fitted():
            for start in range(0, len(old), 512):
                block = old[start : start + 512]
                nearest = (outliers @ block.T).argmax(1)
                moved = block.copy()
                np.add.at(moved, nearest, outliers * 0.02)
                yield normalized(moved)
            for start in range(0, added, 512):
                yield normalized(outliers[start * 8 : (start + 512) * 8].reshape(-1, 8, WIDTH).mean(1))

        write_array(path, fitted(), len(old) + added, np.float32, WIDTH)
        self.metadata["centroids"] = len(old) + added
        self.save_metadata()
