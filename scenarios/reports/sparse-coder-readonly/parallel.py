"""What the script uses of parallel calls: a pool of processes, to which large arrays go as maps of files"""

import multiprocessing
import os
import tempfile

import numpy as np


class Mapped:
    """An array in a file"""

    def __init__(self, path, array):
        self.path = path
        np.save(path, array)


def call(task):
    function, arguments = task
    loaded = [np.load(one.path, mmap_mode="r") if isinstance(one, Mapped) else one for one in arguments]
    return function(*loaded)


class Parallel:
    def __init__(self, n_jobs, max_nbytes=1 << 20, temp_folder="/dev/shm"):
        self.max_nbytes, self.temp_folder = max_nbytes, temp_folder
        self.pool = multiprocessing.get_context("fork").Pool(n_jobs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.terminate()
        self.pool.join()

    def reduce(self, argument, folder, name):
        if isinstance(argument, np.ndarray) and argument.nbytes > self.max_nbytes:
            return Mapped(os.path.join(folder, f"{name}.npy"), argument)
        return argument

    def __call__(self, calls):
        with tempfile.TemporaryDirectory(prefix="joblib_memmapping_folder_", dir=self.temp_folder) as folder:
            tasks = []
            for number, (function, *arguments) in enumerate(calls):
                reduced = [self.reduce(one, folder, f"{number}-{place}") for place, one in enumerate(arguments)]
                tasks.append((function, reduced))
            return self.pool.map(call, tasks, chunksize=1)
