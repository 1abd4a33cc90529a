"""A plate of images in one zip file: an entry for each chunk of each position, and one for its description"""

import json
import zipfile

import numpy as np

CHANNELS, SLICES, HEIGHT, WIDTH = 2, 12, 160, 192


def pack(path, positions):
    source = np.random.default_rng(2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for position in range(positions):
            meta = {"shape": [CHANNELS, SLICES, HEIGHT, WIDTH], "dtype": "<u2", "channels": ["phase", "membrane"]}
            file.writestr(f"{position:03}/meta.json", json.dumps(meta))
            for channel in range(CHANNELS):
                plane = source.integers(80, 900, (HEIGHT, WIDTH), dtype=np.uint16)
                for z in range(SLICES):
                    noise = source.integers(0, 90, plane.shape, dtype=np.uint16)
                    file.writestr(f"{position:03}/{channel}/{z}", (np.roll(plane, z, 1) + noise).tobytes())


class ZipStore:
    """Opened with the first read, and then kept open"""

    def __init__(self, path):
        self.path, self._file = path, None

    def read(self, name):
        if self._file is None:
            self._file = zipfile.ZipFile(self.path)
        return self._file.read(name)


class Position:
    def __init__(self, store, name):
        self.store, self.name = store, name
        meta = json.loads(store.read(f"{name}/meta.json"))
        self.shape, self.dtype, self.channels = meta["shape"], np.dtype(meta["dtype"]), meta["channels"]

    def window(self, channel, begin, end):
        planes = [self.store.read(f"{self.name}/{channel}/{z}") for z in range(begin, end)]
        return np.stack([np.frombuffer(plane, self.dtype).reshape(self.shape[2:]) for plane in planes])
