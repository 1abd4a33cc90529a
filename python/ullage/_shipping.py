"""How a dataset reaches a worker under spawn and forkserver: one pickle, and one sealed memfd for all its tensors.

torch would put each tensor into a segment of its own. The workers of one loader get the same memfd where the bytes
are still the same, which is looked up byte by byte: the dataset is pickled anew each time.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from multiprocessing.reduction import DupFd
from typing import Any

from ullage import _native, _pickling

_ALIGN = 64
_NAME = "ullage-dataset"

_last: weakref.ref[_Memory] | None = None


class _Memory:
    """Bytes that were sent: a memfd that nobody can change, as long as a process that uses it is known here."""

    def __init__(self, layout: list[tuple[int, int]], size: int, parts: list[tuple[int, int, int]]) -> None:
        self.layout = layout
        self.size = size
        self.fd = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            # So that a lack of memory is an error here, and no SIGBUS.
            os.posix_fallocate(self.fd, 0, size)
            with mmap.mmap(self.fd, size) as view:
                _native.gather(view, parts)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        except BaseException:
            os.close(self.fd)
            raise
        weakref.finalize(self, os.close, self.fd)

    def holds(self, layout: list[tuple[int, int]], parts: list[tuple[int, int, int]]) -> bool:
        """True where it has these very bytes."""
        if layout != self.layout:
            return False
        with mmap.mmap(self.fd, self.size, prot=mmap.PROT_READ) as view:
            return bool(_native.equal(view, parts))


class Shipped:
    """An object on its way to a new process."""

    def __init__(self, data: bytes, storages: int, layout: list[tuple[int, int, int]], memory: _Memory | None) -> None:
        self._data = data
        self._storages = storages
        self._layout = layout
        self.memory = memory

    def __reduce__(self) -> Any:
        fd = None if self.memory is None else DupFd(self.memory.fd)
        size = 0 if self.memory is None else self.memory.size
        return _Arrived, (self._data, self._storages, self._layout, fd, size)


class _Arrived:
    def __init__(self, data: bytes, storages: int, layout: list[tuple[int, int, int]], fd: Any, size: int) -> None:
        self._data, self._storages, self._layout, self._fd, self._size = data, storages, layout, fd, size

    def unpack(self) -> Any:
        """The object: its tensors lie in a private mapping, so that a write to one stays in this process."""
        whole = None
        if self._fd is not None:
            fd = self._fd.detach()
            try:
                protection = mmap.PROT_READ | mmap.PROT_WRITE
                flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0x4000)
                whole = memoryview(mmap.mmap(fd, self._size, flags=flags, prot=protection))
            finally:
                os.close(fd)
        parts = [
            (b"" if whole is None or not length else whole[start : start + length], first)
            for start, length, first in self._layout
        ]
        return _pickling.load(self._data, parts, self._storages)


def ship(obj: Any) -> Shipped:
    """Packs an object for a process that is about to be started."""
    global _last
    file, pickler = _pickling.dump(obj)
    places: list[tuple[int, int, int]] = []
    parts: list[tuple[int, int, int]] = []
    end = 0
    raw = [buffer.raw() for buffer in pickler.buffers]
    sources = [
        (address + first, last - first, _pickling.ALONE if alone and first == 0 and last == nbytes else first)
        for _, address, nbytes, first, last, alone in pickler.storages
    ]
    sources += [(_native.address_of(view), view.nbytes, 0) for view in raw]
    for address, length, first in sources:
        places.append((end, length, first))
        if length:
            parts.append((address, length, end))
            end += -(-length // _ALIGN) * _ALIGN
    memory = None
    if end:
        layout = [(start, length) for start, length, _ in places]
        memory = None if _last is None else _last()
        if memory is None or not memory.holds(layout, parts):
            memory = _Memory(layout, end, parts)
            _last = weakref.ref(memory)
    return Shipped(file.getvalue(), len(pickler.storages), places, memory)
