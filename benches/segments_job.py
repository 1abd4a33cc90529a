"""Jobs whose shared memory is known to the byte: each makes segments, holds still, and writes down what there is.

segments_job.py CASE TRUTH_FILE SECONDS
"""

import ctypes
import json
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import time

PAGE = 4096
MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.shmat.restype = ctypes.c_void_p
LIBC.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]

truth = []


def pages(size):
    return -(-size // PAGE) * PAGE


def expect(kind, size, creator, count=1, orphan=False):
    """So many bytes of this kind, made by this process."""
    truth.append({"kind": kind, "bytes": size, "creator": creator, "count": count, "orphan": orphan})


def used():
    room = os.statvfs("/dev/shm")
    return (room.f_blocks - room.f_bfree) * room.f_frsize


def hold_still(path, seconds):
    begin, before = time.time(), used()
    time.sleep(seconds)
    end = time.time()
    named = int(subprocess.run(["du", "-s", "-B1", "/dev/shm"], capture_output=True, check=True).stdout.split()[0])
    record = {"begin": begin, "end": end, "truth": truth, "used": [before, used()], "du": named}
    with open(path + ".tmp", "w") as file:
        json.dump(record, file)
    os.rename(path + ".tmp", path)


def mapped_without_descriptor(fd, size):
    """Maps a file and closes it: nothing but the mapping leads to it any more."""
    address = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    os.close(fd)
    return address


class Child:
    """A forked process that runs `make`, tells what that returns, and waits."""

    inherited = []

    def __init__(self, make):
        read, write = os.pipe()
        wait, self.over = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            # An elder's pipe that stays open here would keep it waiting.
            for over in [*Child.inherited, self.over]:
                os.close(over)
            told = make()
            os.write(write, json.dumps(told if isinstance(told, (int, str, list)) else None).encode())
            os.close(write)
            os.read(wait, 1)
            os._exit(0)
        os.close(write)
        os.close(wait)
        Child.inherited.append(self.over)
        with os.fdopen(read) as pipe:
            self.told = json.loads(pipe.read())

    def end(self):
        Child.inherited.remove(self.over)
        os.close(self.over)
        os.waitpid(self.pid, 0)


# Tensors that a loader's workers make, all of them kept by the trainer.


def loader(strategy, keep_still):
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.multiprocessing.set_sharing_strategy(strategy)

    class Made(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            return torch.full((1000 * (index + 1),), float(index)), os.getpid()

    batches = iter(DataLoader(Made(), batch_size=None, num_workers=3, persistent_workers=True))
    kept, by_worker = [], {}
    for tensor, pid in batches:
        kept.append(tensor)
        size = pages(tensor.numel() * 4 + (64 if strategy == "file_system" else 0))
        have = by_worker.setdefault(int(pid), [0, 0])
        have[0] += size
        have[1] += 1
    for pid, (size, count) in by_worker.items():
        expect("torch", size, pid, count)
    keep_still()
    del kept


def loader_file_system(keep_still):
    loader("file_system", keep_still)


def loader_file_descriptor(keep_still):
    loader("file_descriptor", keep_still)


def shared_tensors(keep_still):
    """Tensors of the main process, shared with two forked children."""
    import torch

    torch.multiprocessing.set_sharing_strategy("file_system")
    kept = [torch.zeros(300 * (n + 1)).share_memory_() for n in range(50)]
    expect("torch", sum(pages(tensor.numel() * 4 + 64) for tensor in kept), os.getpid(), 50)
    children = [Child(lambda: float(sum(t.sum() for t in kept))) for _ in range(2)]
    keep_still()
    for child in children:
        child.end()


def python_shared_memory(keep_still):
    from multiprocessing import shared_memory

    mine = [shared_memory.SharedMemory(create=True, size=3 * MIB + n) for n in range(3)]
    for segment in mine:
        segment.buf[: 5 * PAGE] = b"x" * (5 * PAGE)
    expect("posix-shm", 3 * 5 * PAGE, os.getpid(), 3)

    def make():
        theirs = shared_memory.SharedMemory(create=True, size=2 * MIB)
        theirs.buf[: 2 * MIB] = b"y" * (2 * MIB)
        make.kept = theirs
        return theirs.name

    child = Child(make)
    # The reading has to come before the other process attaches to it, to tell who made it.
    expect("posix-shm", 2 * MIB, child.pid)
    keep_still(2.5)
    attached = shared_memory.SharedMemory(child.told)
    _ = attached.buf[0]
    keep_still()
    attached.close()
    child.end()
    for segment in mine:
        segment.close()
        segment.unlink()


def python_array(keep_still):
    """multiprocessing.Array lives in a file that is deleted at once."""
    array = multiprocessing.Array("d", 400_000, lock=False)
    for index in range(0, 400_000, 512):
        array[index] = 1.0
    # One arena of a power of two of pages; all of its pages but the last ones are written.
    size = os.fstat(next_fd_of("pym-")).st_blocks * 512
    expect("posix-shm", size, os.getpid())
    children = [Child(lambda: array[0]) for _ in range(2)]
    keep_still()
    for child in children:
        child.end()


def next_fd_of(part):
    for fd in os.listdir("/proc/self/fd"):
        try:
            if part in os.readlink(f"/proc/self/fd/{fd}"):
                return int(fd)
        except OSError:
            pass
    raise SystemExit(f"no descriptor of {part}")


def memfds(keep_still):
    fd = os.memfd_create("mine")
    os.ftruncate(fd, 64 * MIB)
    held = mmap.mmap(fd, 64 * MIB)
    held[: 7 * MIB] = b"x" * (7 * MIB)
    expect("memfd", 7 * MIB, os.getpid())

    # A forked child inherits it and makes one of its own, which it holds open and does not map.
    def make():
        own = os.memfd_create("theirs")
        os.write(own, b"y" * (3 * MIB))

    child = Child(make)
    expect("memfd", 3 * MIB, child.pid)
    keep_still()
    child.end()


def mapped_only(keep_still):
    """Nothing but mappings leads to these: a memfd, a deleted file, and two that never had a name."""
    fd = os.memfd_create("closed")
    os.ftruncate(fd, 9 * MIB)
    address = mapped_without_descriptor(fd, 9 * MIB)
    ctypes.memset(address, 1, 4 * MIB)
    expect("memfd", 4 * MIB, os.getpid())
    fd = os.open("/dev/shm/gone", os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink("/dev/shm/gone")
    os.ftruncate(fd, 5 * MIB)
    address = mapped_without_descriptor(fd, 5 * MIB)
    ctypes.memset(address, 1, 2 * MIB)
    expect("posix-shm", 2 * MIB, os.getpid())
    area = mmap.mmap(-1, 6 * MIB)
    area[: 3 * MIB] = b"x" * (3 * MIB)
    expect("shared-anonymous", 6 * MIB, os.getpid())

    # Its upper half is written by a child alone.
    def make():
        area[3 * MIB :] = b"y" * (3 * MIB)

    child = Child(make)
    keep_still()
    child.end()


def deleted_files(keep_still):
    held = []
    for number in range(3):
        path = f"/dev/shm/deleted-{number}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"x" * ((number + 1) * MIB + 1))
        os.unlink(path)
        held.append(fd)
    expect("posix-shm", sum(pages((n + 1) * MIB + 1) for n in range(3)), os.getpid(), 3)
    keep_still()


def system_v(keep_still):
    private, create = 0, 0o1000 | 0o600

    def make(size):
        shmid = LIBC.shmget(private, size, create)
        if shmid < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        address = LIBC.shmat(shmid, None, 0)
        ctypes.memset(address, 1, size // 2)
        return shmid

    mine = make(4 * MIB)
    expect("sysv", 2 * MIB, os.getpid())
    child = Child(lambda: make(2 * MIB))
    expect("sysv", MIB, child.pid)
    keep_still()
    child.end()
    for shmid in (mine, child.told):
        LIBC.shmctl(shmid, 0, None)


def killed_creator(keep_still):
    """A child makes three segments and is killed: what it made has no user, and is left behind."""
    from multiprocessing import resource_tracker, shared_memory

    def make():
        python = shared_memory.SharedMemory(create=True, size=3 * MIB)
        python.buf[:] = b"x" * python.size
        resource_tracker.unregister(python._name, "shared_memory")  # as where the tracker was killed, too
        fd = os.open(f"/dev/shm/torch_{os.getpid()}_1804289383_0", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"y" * (2 * MIB))
        os.close(fd)
        shmid = LIBC.shmget(0, MIB, 0o1600)
        ctypes.memset(LIBC.shmat(shmid, None, 0), 1, MIB)
        make.kept = python

    child = Child(make)
    time.sleep(3)
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    expect("posix-shm", 3 * MIB, child.pid, orphan=True)
    expect("torch", 2 * MIB, child.pid, orphan=True)
    expect("sysv", MIB, child.pid, orphan=True)
    # Something has to move, so that a reading is made after its end.
    mine = os.memfd_create("after")
    os.write(mine, b"z" * (2 * MIB))
    expect("memfd", 2 * MIB, os.getpid())
    keep = mmap.mmap(mine, 2 * MIB)
    _ = sum(keep[at] for at in range(0, 2 * MIB, PAGE))
    keep_still()


def killed_at_once(keep_still):
    """A child that lives for a tenth of a second: nobody sees it with what it makes."""

    def make():
        fd = os.open("/dev/shm/psm_deadbeef", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"y" * MIB)
        os.close(fd)
        fd = os.open(f"/dev/shm/torch_{os.getpid()}_1_0", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"y" * MIB)

    child = Child(make)
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    expect("posix-shm", MIB, None, orphan=True)
    expect("torch", MIB, child.pid, orphan=True)
    keep_still()


def arena(keep_still):
    """ullage's own arena and share."""
    import torch
    from torch.utils.data import DataLoader

    import ullage

    data = ullage.share([torch.arange(200_000), ["word"] * 10_000])
    loader = DataLoader(
        [torch.ones(50_000) for _ in range(20)], num_workers=2, multiprocessing_context=ullage.context("fork")
    )
    kept = list(loader)
    kinds = {"ullage-arena": "ullage-arena", "ullage-share": "ullage-shared"}
    for kind, name in kinds.items():
        size = os.fstat(next_fd_of(name)).st_blocks * 512
        expect(kind, size, os.getpid())
    keep_still()
    del kept, data


def many(keep_still):
    """As many tensors as one process may map, each a segment of its own."""
    import torch

    torch.multiprocessing.set_sharing_strategy("file_system")
    count = int(os.environ.get("SEGMENTS_MANY", "60000"))
    kept = [torch.zeros(80).share_memory_() for _ in range(count)]
    expect("torch", count * PAGE, os.getpid(), count)
    keep_still()
    del kept


CASES = {
    case.__name__.replace("_", "-"): case
    for case in (
        loader_file_system,
        loader_file_descriptor,
        shared_tensors,
        python_shared_memory,
        python_array,
        memfds,
        mapped_only,
        deleted_files,
        system_v,
        killed_creator,
        killed_at_once,
        arena,
        many,
    )
}


def main():
    case, path, seconds = CASES[sys.argv[1]], sys.argv[2], float(sys.argv[3])

    def keep_still(short=None):
        if short is not None:
            time.sleep(short)
        else:
            hold_still(path, seconds)

    case(keep_still)


if __name__ == "__main__":
    main()
