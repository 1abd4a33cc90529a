"""How long one process's main thread holds others' address spaces, by the kernel's own tracepoints (tracefs, root).

`mmap_lock` is the lock that a process's mmap, munmap and page faults may have to wait for; the kernel tells when it was
taken and when it was let go, of which address space. Newer kernels (6.17) read `maps` with no more than a lock of one
mapping at a time, which has no tracepoint: a whole read from the file takes longer, and is taken in its place.

A hold counts by the clock. Where the holder was taken off its processor meanwhile (`sched_switch`), others waited for
as long all the same; how long that was and who ran stand beside it. The rest is the holder's own work, and interrupts.
"""

import collections
import contextlib
import os
import re
import threading
import typing

TRACING = "/sys/kernel/tracing"
EVENTS = [
    "mmap_lock/mmap_lock_acquire_returned",
    "mmap_lock/mmap_lock_released",
    "sched/sched_switch",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
]
LINE = re.compile(r"\s(\d+\.\d+): (\w+): (.*)$")
NEXT = re.compile(r"next_comm=(.*) next_pid=\d+ next_prio=(\d+)")
READS = {0, 17}  # read, pread64 on x86-64
# Only `maps` is read with a buffer of 64 KiB; what is read with one for a record is handed out under no such lock.
LARGE = 64 * 1024


class Hold(typing.NamedTuple):
    """One hold, in seconds."""

    held: float
    #: Of these, without a processor: others ran.
    off: float
    #: The system call in which it was: its number and its third argument, the size of a read. None: a fault, or unseen.
    call: tuple
    #: Who ran meanwhile, with its priority.
    instead: str = ""

    def told(self):
        if self.call is None:
            return "no system call"
        number, size = self.call
        name = {0: "a read", 17: "a pread"}.get(number, f"system call {number}, third argument")
        return f"{name} of {size} bytes" if number in READS else f"{name} {size}"


class Holds:
    """What was seen of one process, in seconds."""

    def __init__(self, pid):
        self.pid = pid
        self.taken = {}
        self.of = collections.defaultdict(list)
        self.written = set()
        self.call = None
        self.gone, self.off, self.instead = None, 0.0, ""
        self.maps_reads, self.reads = [], []
        self.lost = False

    def take(self, line):
        if "LOST" in line:
            self.lost = True
        match = LINE.search(line)
        if not match:
            return
        at, event, rest = float(match[1]), match[2], match[3]
        if event == "mmap_lock_acquire_returned" and "success=true" in rest:
            space = rest.split()[0]
            self.taken[space] = (at, self.off)
            if "write=true" in rest:
                # Nobody writes to the list of another's mappings: this is its own.
                self.written.add(space)
        elif event == "mmap_lock_released":
            space = rest.split()[0]
            if space in self.taken:
                since, off = self.taken.pop(space)
                instead = self.instead if self.off > off else ""
                self.of[space].append(Hold(at - since, self.off - off, self.call and self.call[::2], instead))
        elif event == "sched_switch":
            if f"prev_pid={self.pid} " in rest:
                self.gone = at
                self.instead = " at ".join(NEXT.search(rest).groups())
            elif self.gone is not None:
                self.off += at - self.gone
                self.gone = None
        elif event == "sys_enter":
            number, _, arguments = rest[len("NR ") :].partition(" ")
            arguments = arguments.strip("()").split(", ")
            self.call = (int(number), (at, self.off), int(arguments[2], 16))
        elif event == "sys_exit" and self.call:
            number, (since, off), size = self.call
            self.call = None
            if number in READS:
                reads = self.maps_reads if size >= LARGE else self.reads
                reads.append(Hold(at - since, self.off - off, (number, size)))

    def others(self):
        """Holds of address spaces that are not its own."""
        return [hold for space, holds in self.of.items() if space not in self.written for hold in holds]


@contextlib.contextmanager
def traced(pid):
    """Traces a process meanwhile. PermissionError where this may not be done."""
    if not os.path.isdir(os.path.join(TRACING, "instances")):
        raise SystemExit(f"{TRACING} is not there: mount -t tracefs none {TRACING} (root), or --no-holds")
    instance = os.path.join(TRACING, "instances", f"holds-{os.getpid()}")
    os.mkdir(instance)

    def write(name, text):
        with open(os.path.join(instance, name), "w") as file:
            file.write(text)

    holds = Holds(pid)
    try:
        write("trace_clock", "mono")
        write("buffer_size_kb", "4096")
        write("set_event_pid", str(pid))
        with open(os.path.join(instance, "trace_pipe"), "rb", buffering=0) as pipe:
            os.set_blocking(pipe.fileno(), False)
            ended = threading.Event()
            reader = threading.Thread(target=drain, args=(pipe, holds, ended))
            for event in EVENTS:
                write(f"events/{event}/enable", "1")
            reader.start()
            try:
                yield holds
            finally:
                for event in EVENTS:
                    write(f"events/{event}/enable", "0")
                ended.set()
                reader.join()
    finally:
        os.rmdir(instance)


def drain(pipe, holds, ended):
    rest = b""
    while True:
        last = ended.is_set()
        try:
            chunk = pipe.read(1 << 20) or b""
        except BlockingIOError:
            chunk = b""
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            holds.take(line.decode(errors="replace"))
        if not chunk:
            if last:
                return
            ended.wait(0.2)
