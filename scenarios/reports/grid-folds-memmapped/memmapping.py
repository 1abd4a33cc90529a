"""A Parallel in the way of joblib: large arrays reach the workers as memory-mapped files"""

import concurrent.futures
import multiprocessing
import os
import pickle
import shutil
import threading
import uuid

import numpy as np

SYSTEM_SHARED_MEM_FS = "/dev/shm"


class Handle:
    """What the array writer gets to write to"""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        return self.file.write(data)


class Mapped:
    def __init__(self, path):
        self.path = path

    def open(self):
        return np.load(self.path, mmap_mode="r")


class ArrayMemmapForwardReducer:
    def __init__(self, folder, max_nbytes):
        self.folder = folder
        self.max_nbytes = max_nbytes

    def __call__(self, value):
        if not isinstance(value, np.ndarray) or value.nbytes <= self.max_nbytes:
            return value
        name = f"{os.getpid()}-{threading.get_ident()}-{uuid.uuid4().hex}.pkl"
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            np.lib.format.write_array(Handle(file), value)
        return Mapped(path)


def call(function, arguments):
    return function(*[value.open() if isinstance(value, Mapped) else value for value in arguments])


def delayed(function):
    def pack(*arguments):
        return function, arguments

    return pack


class Parallel:
    def __init__(self, n_jobs, max_nbytes=1 << 20, pre_dispatch=2):
        self.n_jobs = n_jobs
        self.max_nbytes = max_nbytes
        self.pre_dispatch = pre_dispatch * n_jobs

    def __call__(self, tasks):
        folder = os.path.join(SYSTEM_SHARED_MEM_FS, f"joblib_memmapping_folder_{os.getpid()}_{uuid.uuid4().hex}")
        os.mkdir(folder, 0o700)
        reduce = ArrayMemmapForwardReducer(folder, self.max_nbytes)
        context = multiprocessing.get_context("fork")
        results, pending = {}, {}
        try:
            with concurrent.futures.ProcessPoolExecutor(self.n_jobs, mp_context=context) as executor:
                for number, (function, arguments) in enumerate(tasks):
                    try:
                        reduced = [reduce(value) for value in arguments]
                    except OSError as error:
                        raise pickle.PicklingError("Could not pickle the task to send it to the workers.") from error
                    pending[executor.submit(call, function, reduced)] = number
                    if len(pending) >= self.pre_dispatch:
                        self.collect(pending, results)
                while pending:
                    self.collect(pending, results)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [results[number] for number in sorted(results)]

    def collect(self, pending, results):
        done, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            results[pending.pop(future)] = future.result()
            if len(results) % 10 == 0:
                print(f"[Parallel(n_jobs={self.n_jobs})]: Done {len(results)} tasks", flush=True)
