"""A worker ends with its trainer: at most a second after it, however that one ended.

The first thing of ours that a new process imports: only what that takes is here.
"""

from __future__ import annotations

import os

from ullage import _native

_ends: tuple[int, int, int] | None = None


def this() -> tuple[int, int]:
    """pid and start of this process, for its workers."""
    return os.getpid(), start_of(os.getpid())


def start_of(pid: int) -> int:
    """Start of a process in clock ticks since boot (proc_pid_stat(5), field 22); zero where it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def end_with(pid: int, start: int) -> None:
    """From now on this process ends with that one; now, where that has ended already."""
    global _ends
    this = os.getpid(), pid, start
    if _ends == this:
        return
    _ends = this
    if not _native.end_with(pid, start):
        os._exit(1)
