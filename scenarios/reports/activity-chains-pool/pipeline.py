"""Stages that depend on each other, with a context for work in parallel"""

import multiprocessing

_worker = None


class WorkerContext:
    """What a task sees in the process where it runs: the data of the stage, and what it made there"""

    def __init__(self, data):
        self.data, self.made = data, {}


def _initialize(data):
    global _worker
    _worker = WorkerContext(data)


def _run(packed):
    function, argument = packed
    return function(_worker, argument)


class ParallelContext:
    def __init__(self, data, processes, maxtasksperchild=None):
        self.data, self.processes, self.maxtasksperchild = data, processes, maxtasksperchild

    def __enter__(self):
        self.pool = multiprocessing.get_context("fork").Pool(
            self.processes, initializer=_initialize, initargs=(self.data,), maxtasksperchild=self.maxtasksperchild
        )
        return self

    def imap_unordered(self, function, arguments):
        return self.pool.imap_unordered(_run, [(function, argument) for argument in arguments])

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.pool.close()
        else:
            self.pool.terminate()
        self.pool.join()


class Context:
    def __init__(self, config):
        self.config, self.results = config, {}

    def stage(self, module):
        if module not in self.results:
            self.results[module] = module.execute(self)
        return self.results[module]

    def parallel(self, data):
        return ParallelContext(data, self.config["processes"], self.config["maxtasksperchild"])
