"""A parent and two forked children that share memory in every way, and a file that says what they did to it.

    sharing.py TRUTH UID SCALE

Of the private block of 16 parts, the first child rewrites parts 0 to 7, the parent then 8 to 11, the second child
none: 12 to 15 are common to all three, 0 to 7 to the parent and the second child, 8 to 11 to both children. A part
is SCALE pages. Everything is written to before the forks, so that nothing is left to chance.
"""

import ctypes
import json
import mmap
import os
import sys
import time

PAGE = 4096
TRUTH, UID, SCALE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
PART = SCALE * PAGE
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]


def address(block):
    return ctypes.addressof(ctypes.c_char.from_buffer(block))


def fill(block, start, length, byte):
    for at in range(start, start + length, PAGE):
        block[at] = byte


def touch(block, length):
    return sum(block[at] for at in range(0, length, PAGE))


def anonymous(parts, shared, advice):
    kind = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
    block = mmap.mmap(-1, parts * PART, kind | mmap.MAP_ANONYMOUS)
    block.madvise(advice)
    fill(block, 0, len(block), 1)
    return block


def of_file(fd, parts, written, kind=mmap.MAP_SHARED):
    os.ftruncate(fd, parts * PART)
    block = mmap.mmap(fd, parts * PART, kind)
    fill(block, 0, written * PART, 1)
    return block


def main():
    os.setgid(UID)
    os.setuid(UID)
    # The parent of a setuid process is root: without this, nobody else may look at it.
    libc.prctl(4, 1, 0, 0, 0)
    # A block that nobody refers to is unmapped.
    areas, kept = {}, []

    def known(name, block, **about):
        kept.append(block)
        areas[name] = {"start": address(block), "bytes": len(block), **about}
        return block

    private = known("private", anonymous(16, False, mmap.MADV_NOHUGEPAGE))
    huge = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    huge.madvise(mmap.MADV_HUGEPAGE)
    fill(huge, 0, len(huge), 1)
    known("huge", huge)
    shared = known("shared-anonymous", anonymous(4, True, mmap.MADV_NOHUGEPAGE), written=4 * PART)
    memfd = os.memfd_create("sharing-memfd")
    known("memfd", of_file(memfd, 4, 3), written=3 * PART, inode=os.fstat(memfd).st_ino)
    for name, left in (("named", True), ("deleted", False)):
        path = f"/dev/shm/sharing-{name}"
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        known(name, of_file(fd, 2, 2), written=2 * PART, inode=os.fstat(fd).st_ino)
        os.close(fd)
        if not left:
            os.unlink(path)
    segment = libc.shmget(0, 2 * PART, 0o1600)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    at = libc.shmat(segment, None, 0)
    ctypes.memset(at, 1, 2 * PART)
    # Removed with its last user, whatever ends this job.
    libc.shmctl(segment, 0, None)
    areas["sysv"] = {"start": at, "bytes": 2 * PART, "written": 2 * PART, "inode": segment}
    file = os.open(f"{TRUTH}.data", os.O_CREAT | os.O_RDWR, 0o600)
    known("mapped-file", of_file(file, 2, 2), written=2 * PART, inode=os.fstat(file).st_ino)
    os.unlink(f"{TRUTH}.data")

    ready, tell = os.pipe()
    children = []
    for rewrites in (range(0, 8), range(0)):
        child = os.fork()
        if child == 0:
            for part in rewrites:
                fill(private, part * PART, PART, 2)
            touch(shared, PART)
            touch(private, len(private))
            os.write(tell, b"x")
            time.sleep(600)
            os._exit(0)
        children.append(child)
        os.read(ready, 1)
    for part in range(8, 12):
        fill(private, part * PART, PART, 3)
    processes = {
        "parent": {"pid": os.getpid(), "private_exclusive": 4 * PART},
        "rewriter": {"pid": children[0], "private_exclusive": 8 * PART},
        "reader": {"pid": children[1], "private_exclusive": 0},
    }
    with open(f"{TRUTH}.new", "w") as out:
        json.dump({"page": PAGE, "areas": areas, "processes": processes}, out)
    os.rename(f"{TRUTH}.new", TRUTH)
    time.sleep(600)


main()
