"""What a queue says of a process that ended before its time."""

from __future__ import annotations

import queue
import signal

from ullage._errors import Error


class WorkerDied(queue.Empty, Error):
    """A process that a queue is read from ended before its time.

    A `queue.Empty`, because that is what a DataLoader understands as "look after the workers": what it raises
    then has this as its `__cause__`. `pid`; `exitcode` as in `multiprocessing.Process.exitcode`.
    """

    def __init__(self, pid: int, exitcode: int) -> None:
        self.pid = pid
        self.exitcode = exitcode
        how = how_it_ended(exitcode)
        super().__init__(f"worker process {pid} {how}; run the job as `ullage run -- ...` to see which limit it met")


def how_it_ended(exitcode: int) -> str:
    """In words, as the predicate of a sentence; `exitcode` as in `multiprocessing.Process.exitcode`."""
    if exitcode < 0:
        return f"was killed by {_signal_name(-exitcode)} (sender unknown)"
    return f"ended with exit status {exitcode}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
