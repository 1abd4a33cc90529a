"""How a dataset reaches a worker under spawn and forkserver: one pickle, and one sealed memfd for all its tensors.

torch would put each tensor into a segment of its own. The workers of one loader get the same memfd where the bytes
are still the same, which is looked up byte by byte: the dataset is pickled anew each time.
"""

from __future__ import annotations

import mmap
import os
import weakref
from multiprocessing.reduction import DupFd
from typing import Any

from ullage import _native, _pickling
from ullage._errors import Error

_NAME = "ullage-dataset"

_last: weakref.ref[Memory] | None = None


class Memory:
    """Bytes that were sent: a memfd that nobody can change, as long as a process that uses it is known here."""

    def __init__(self, layout: bytes, size: int, encoder: _native.Encoder) -> None:
        try:
            _native.check_headroom(size)
        except _native.ArenaError as error:
            raise Error(f"the dataset's tensors do not fit into memory a second time: {error}") from None
        self.layout = layout
        self.size = size
        self.fd = _native.memfd(_NAME)
        try:
            os.ftruncate(self.fd, size)
            # So that a lack of memory is an error here, and no SIGBUS.
            os.posix_fallocate(self.fd, 0, size)
            with mmap.mmap(self.fd, size) as view:
                encoder.fill(view)
            _native.seal(self.fd)
        except BaseException:
            os.close(self.fd)
            raise
        weakref.finalize(self, os.close, self.fd)

    def holds(self, layout: bytes, encoder: _native.Encoder) -> bool:
        """True where it has these very bytes."""
        if layout != self.layout:
            return False
        # Private: until Linux 6.7 a sealed file could not be mapped as shared, not even for reading.
        with mmap.mmap(self.fd, self.size, mmap.MAP_PRIVATE, mmap.PROT_READ) as view:
            return encoder.matches(view)


class Shipped:
    """An object on its way to a new process."""

    def __init__(
        self, data: bytes, plain: bytes, layout: bytes, storages: int, memory: Memory | None, passed_by: int
    ) -> None:
        self._text = data, plain, layout, storages
        self.memory = memory
        # Bytes that go in segments of torch's own.
        self.passed_by = passed_by

    def __reduce__(self) -> Any:
        fd = None if self.memory is None else DupFd(self.memory.fd)
        size = 0 if self.memory is None else self.memory.size
        return _Arrived, (*self._text, fd, size)


class _Arrived:
    def __init__(self, data: bytes, plain: bytes, layout: bytes, storages: int, fd: Any, size: int) -> None:
        self._text, self._fd, self._size = (data, plain, layout, storages), fd, size

    def unpack(self) -> Any:
        """The object: its tensors lie in a private mapping, so that a write to one stays in this process."""
        _pickling.load_torch()
        fd = None if self._fd is None else self._fd.detach()
        try:
            return _native.Incoming.mapped(fd, self._size, *self._text).load()
        finally:
            if fd is not None:
                os.close(fd)


def memory_of(encoder: _native.Encoder) -> Memory:
    """What an encoder collected, copied: the memory of before, where its bytes are still these."""
    global _last
    size, _, layout = encoder.layout()
    memory = None if _last is None else _last()
    if memory is None or not memory.holds(layout, encoder):
        memory = Memory(layout, size, encoder)
        _last = weakref.ref(memory)
    return memory


def ship(obj: Any) -> Shipped:
    """Packs an object for a process that is about to be started."""
    pickler = _pickling.dump(obj)
    encoder = pickler.encoder
    data, plain = encoder.data()
    size, storages, layout = encoder.layout()
    memory = memory_of(encoder) if size else None
    passed_by = encoder.passed_by
    _pickling.done(pickler)
    return Shipped(data, plain, layout, storages, memory, passed_by)
