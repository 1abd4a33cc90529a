"""Iterates over a pipeline that runs in a process of its own"""

import multiprocessing
import queue

END = "end of the iteration"


def _run(source, arguments, arena, items):
    for array, rest in source(*arguments):
        items.put((arena.write(array), rest))
    items.put(END)


def iterate_in_subprocess(source, arguments, arena, buffer_size=6, timeout=60):
    context = multiprocessing.get_context("fork")
    items = context.Queue(maxsize=buffer_size)
    process = context.Process(target=_run, args=(source, arguments, arena, items), daemon=True)
    process.start()
    try:
        while True:
            try:
                item = items.get(timeout=timeout)
            except queue.Empty:
                raise RuntimeError(f"the worker is silent, its status is {process.exitcode}") from None
            if item == END:
                break
            marker, rest = item
            array = arena.read(marker)
            arena.release(marker)
            yield array, rest
    finally:
        process.join(5)
        process.kill()
