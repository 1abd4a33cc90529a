"""Calls of functions in worker processes, which are reused from call to call"""

import concurrent.futures
import multiprocessing

_executor = None
_executor_size = None


def get_reusable_executor(max_workers):
    """The executor of the last call if it has the same size, a new one otherwise"""
    global _executor, _executor_size
    if _executor is not None and _executor_size != max_workers:
        _executor.shutdown(wait=True)
        _executor = None
    if _executor is None:
        context = multiprocessing.get_context("spawn")
        _executor = concurrent.futures.ProcessPoolExecutor(max_workers, mp_context=context)
        _executor_size = max_workers
    return _executor


def delayed(function):
    return lambda *arguments: (function, arguments)


class LokyBackend:
    def __init__(self, n_jobs):
        self.workers = get_reusable_executor(n_jobs)

    def apply_async(self, function, arguments):
        return self.workers.submit(function, *arguments)

    def terminate(self):
        self.workers = None


class Parallel:
    def __init__(self, n_jobs):
        self.n_jobs = n_jobs
        self._backend = None

    def __call__(self, calls):
        self._backend = LokyBackend(self.n_jobs)
        futures = [self._backend.apply_async(function, arguments) for function, arguments in calls]
        return [future.result() for future in futures]

    def _terminate_backend(self):
        if self._backend is not None:
            self._backend.terminate()
            self._backend = None
