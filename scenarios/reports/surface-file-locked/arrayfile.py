"""What the script uses of an array file: arrays by their names in one file, which is locked while it is open"""

import fcntl
import io
import os

import numpy as np


class File:
    """Modes: r (shared lock), r+ and w (exclusive lock)"""

    def __init__(self, path, mode):
        self.path, self.mode = path, mode
        flags = {"r": os.O_RDONLY, "r+": os.O_RDWR, "w": os.O_RDWR | os.O_CREAT}[mode]
        self.descriptor = os.open(path, flags, 0o644)
        try:
            fcntl.flock(self.descriptor, (fcntl.LOCK_SH if mode == "r" else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.descriptor)
            raise OSError(
                f"Unable to open file (unable to lock file, errno = {error.errno}, error message = '{error.strerror}')"
            ) from error
        self.arrays = {}
        if mode != "w" and os.fstat(self.descriptor).st_size:
            data = os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)
            self.arrays = dict(np.load(io.BytesIO(data)))

    def __getitem__(self, name):
        return self.arrays[name]

    def __setitem__(self, name, value):
        self.arrays[name] = value

    def flush(self):
        out = io.BytesIO()
        np.savez(out, **self.arrays)
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, out.getvalue(), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mode != "r":
            self.flush()
        os.close(self.descriptor)
