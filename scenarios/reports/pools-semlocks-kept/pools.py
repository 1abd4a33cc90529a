"""A pool of processes in the way of billiard's, for a few tasks"""

import multiprocessing
from multiprocessing import util

context = multiprocessing.get_context("fork")


def work(inqueue, outqueue, quitting):
    while not quitting.is_set():
        task = inqueue.get()
        if task is None:
            break
        number, function, argument = task
        outqueue.put((number, function(argument)))


def terminate_pool(inqueue, outqueue, quitting):
    quitting.set()
    inqueue.close()
    outqueue.close()


class Pool:
    def __init__(self, processes):
        self._inqueue, self._outqueue = context.SimpleQueue(), context.SimpleQueue()
        self._quitting = context.Event()
        arguments = (self._inqueue, self._outqueue, self._quitting)
        self._workers = [context.Process(target=work, args=arguments) for _ in range(processes)]
        for worker in self._workers:
            worker.start()
        self._terminate = util.Finalize(None, terminate_pool, args=arguments, exitpriority=15)

    def map(self, function, arguments):
        arguments = list(arguments)
        for number, argument in enumerate(arguments):
            self._inqueue.put((number, function, argument))
        results = dict(self._outqueue.get() for _ in arguments)
        return [results[number] for number in range(len(arguments))]

    def close(self):
        for _ in self._workers:
            self._inqueue.put(None)
        for worker in self._workers:
            worker.join()
            worker.close()
        self._inqueue.close()
        self._outqueue.close()
