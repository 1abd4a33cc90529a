"""Runs a function in a process of its own with limits, in the way of pynisher"""

import multiprocessing
import resource
import time

context = multiprocessing.get_context("fork")


def subprocess_func(function, connection, cpu_time_s, arguments):
    if cpu_time_s is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_time_s, cpu_time_s))
    connection.send(function(*arguments))
    connection.close()


class enforce_limits:
    def __init__(self, cpu_time_in_s=None):
        self.cpu_time_in_s = cpu_time_in_s
        self.exit_status, self.wall_clock_time = None, 0.0

    def __call__(self, function):
        def limited(*arguments):
            parent, child = context.Pipe(duplex=False)
            started = time.monotonic()
            process = context.Process(
                target=subprocess_func, args=(function, child, self.cpu_time_in_s, arguments)
            )
            process.start()
            child.close()
            try:
                result = parent.recv()
            except EOFError:
                result = None
            process.join()
            self.exit_status, self.wall_clock_time = process.exitcode, time.monotonic() - started
            return result

        return limited
