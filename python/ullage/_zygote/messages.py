"""What trainer, zygote and worker say to each other: bytes with descriptors, and what can stand in those bytes."""

from __future__ import annotations

import array
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

_HEADER = struct.Struct("=QI")  # bytes of the text, and descriptors that come with it
_MOST_FDS = 253  # in one sendmsg: SCM_MAX_FD of the kernel


def send(to: socket.socket, text: bytes, fds: Sequence[int] = ()) -> None:
    """Sends a message."""
    data = _HEADER.pack(len(text), len(fds))
    for at in range(0, len(fds), _MOST_FDS):
        part = array.array("i", fds[at : at + _MOST_FDS])
        to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, part)])
        data = b"+"
    if not fds:
        to.sendall(data)
    to.sendall(text)


def receive(source: socket.socket) -> tuple[bytes, list[int]]:
    """The next message, its text and its descriptors; EOFError where the other end is gone."""
    # Not socket.recv_fds: it loses its flags, and descriptors must not get into programs that are started here.
    fds = array.array("i")
    room = socket.CMSG_SPACE(_MOST_FDS * fds.itemsize)
    length, count, size = 0, -1, _HEADER.size
    while len(fds) != count:
        head, ancillary, flags, _ = source.recvmsg(size, room, socket.MSG_CMSG_CLOEXEC)
        if len(head) < size:
            raise EOFError("the other end is gone")
        if count == -1:
            length, count = _HEADER.unpack(head)
            size = 1
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        if flags & socket.MSG_CTRUNC:
            raise OSError(f"{count} descriptors were sent, and the limit of open files (ulimit -n) lets fewer in")
    text = bytearray(length)
    view, at = memoryview(text), 0
    while at < length:
        got = source.recv_into(view[at:])
        if got == 0:
            raise EOFError("the other end is gone")
        at += got
    return bytes(text), list(fds)


# By place (a number for an argument, a name for a keyword, None for the target): what the workers share.
shared: dict[Any, Any] = {}

_arrived: Callable[[int], int]


def descriptors(arrived: Callable[[int], int]) -> None:
    """What gives the descriptors of the message that is unpickled from now on."""
    global _arrived
    _arrived = arrived


class Passed:
    """A descriptor on its way: its number among those of its message."""

    def __init__(self, number: int) -> None:
        self.number = number

    def detach(self) -> int:
        return _arrived(self.number)


class Own:
    """What one process has for itself, by place; the rest of its target and its arguments is `shared`."""

    memory = None
    passed_by = 0

    def __init__(self, parts: dict[Any, Any]) -> None:
        self.parts = parts

    def unpack(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        parts = {**shared, **self.parts}
        target = parts.pop(None)
        named = {place: value for place, value in parts.items() if isinstance(place, str)}
        return target, tuple(parts[number] for number in range(len(parts) - len(named))), named
