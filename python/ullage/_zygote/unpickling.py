"""How the zygote makes objects of the pickle while the trainer still writes it.

The surprise: what lies beside a pickle (tensors' rows and memory, buffers, descriptors) is known only at its end. So
the rest of the pickle is read into memory at the first object that needs any of it, and nothing else ever is.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import socket
import types
from collections.abc import Callable
from typing import Any

from ullage import _native
from ullage._zygote import messages

# Unpickling so many bytes takes less than the margin: an empty dict is 64 bytes of memory and two of a pickle.
_LOOK_EVERY = 1 << 20
_MARGIN = 64 << 20


class Stream:
    """The pickle as it comes."""

    def __init__(self, fd: int) -> None:
        self._file: Any = open(fd, "rb", buffering=1 << 20)
        self._unseen = 0

    def read(self, size: int) -> bytes:
        self._look(size)
        data: bytes = self._file.read(size)
        return data

    def readinto(self, target: Any) -> int:
        self._look(len(target))
        size: int = self._file.readinto(target)
        return size

    def readline(self) -> bytes:
        line: bytes = self._file.readline()
        return line

    def take_all(self) -> None:
        """Lets the trainer come to the end of its pickle."""
        with self._file as file:
            self._file = io.BytesIO(file.read())

    def _look(self, size: int) -> None:
        # An error while there is room for one: later the kernel would kill, this process or another.
        self._unseen += size
        if self._unseen >= _LOOK_EVERY:
            self._unseen = 0
            try:
                _native.check_headroom(size + _MARGIN)
            except _native.ArenaError as error:
                raise MemoryError(f"it does not fit into memory: {error}") from None


_asked: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def _call() -> Any:
    function, arguments = _asked.pop()
    return function(*arguments)


class _Call:
    def __reduce__(self) -> Any:
        return _call, ()


class _Beside:
    """What lies beside the pickle."""

    def __init__(self, control: socket.socket, stream: Stream) -> None:
        self._control, self._stream = control, stream
        self._message: _native.Incoming | None = None
        self._fds: list[int] = []

    def message(self) -> _native.Incoming:
        """Its memory, as what tensors are made of."""
        if self._message is None:
            self._stream.take_all()
            text, self._fds = messages.receive(self._control)
            size, rows, table, storages = pickle.loads(text)
            memory = self._fds.pop(0) if size else None
            # Its own pickle is `_call`: that is how a function runs while this is the message that is being read.
            call = pickle.dumps(_Call())
            self._message = _native.Incoming.mapped(memory, size, call, rows, table, storages)
            if memory is not None:
                os.close(memory)
        return self._message

    def made(self, function: Callable[..., Any], *arguments: Any) -> Any:
        message = self.message()
        _asked.append((function, arguments))
        return message.load()

    def descriptor(self, number: int) -> int:
        self.message()
        return self._fds[number]


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: Stream, beside: _Beside) -> None:
        super().__init__(stream)
        self._beside = beside

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        functions = types.FunctionType, types.BuiltinFunctionType
        if module in ("ullage._native", "ullage._pickling", "ullage.torch") and isinstance(found, functions):
            return functools.partial(self._beside.made, found)
        return found


def unpickle(control: socket.socket, stream: Stream) -> Any:
    """The object whose pickle comes through `stream`, and what lies beside it through `control`."""
    beside = _Beside(control, stream)
    messages.descriptors(beside.descriptor)
    try:
        result = _Unpickler(stream, beside).load()
        beside.message()
    finally:
        messages.descriptors([].__getitem__)  # and `beside` is let go
    return result
