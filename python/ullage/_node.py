"""One copy of shared data for all processes of a node that torchrun started.

The first of them binds a name in the abstract namespace of AF_UNIX (unix(7)), makes the data, and hands its
descriptor to the others; a name that nobody binds any more is free again, so that nothing is left after a death: the
next one then makes the data. The surprise: any user may connect to such a name, so that both sides look at the
other's user id (SO_PEERCRED).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import socket
import struct
import threading
from collections.abc import Callable
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from ullage import _pages
from ullage._errors import Error

_calls = itertools.count()
# What names a job: torchrun's run id, its rendezvous, and how often it was started again.
_RUN = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")


def once_per_node(make: Callable[[], Any]) -> Any:
    """What `make` shares in the first process of this node that comes here."""
    missing = [name for name in ("TORCHELASTIC_RUN_ID", "LOCAL_RANK") if name not in os.environ]
    if missing:
        raise Error(
            f"share(per_node=True) is for processes that torchrun started: {' and '.join(missing)} not set. "
            "Call share() without it, and give the result to the processes that this one starts"
        )
    name = _name(next(_calls))
    while True:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.bind(name)
        except OSError:
            server.close()
            got = _receive(name)
            if got is not None:
                return got[0]
            continue  # who had the name is gone
        try:
            # Whoever comes meanwhile waits in the backlog.
            server.listen(socket.SOMAXCONN)
            made = make()
            if not isinstance(made, _pages.Shared):
                raise Error("share(per_node=True) is for lists, dicts, arrays and tensors, not for a single object")
        except BaseException:
            server.close()
            raise
        threading.Thread(target=_serve, args=(server, made), name="ullage-share", daemon=True).start()
        return made


def _name(call: int) -> str:
    run = "/".join([str(os.getuid()), *(os.environ.get(name, "") for name in _RUN), str(call)])
    # Hashed, for a name has at most 107 bytes (unix(7)).
    return f"\0ullage-share-{hashlib.sha256(run.encode()).hexdigest()[:32]}"


def _is_own_user(peer: socket.socket) -> bool:
    found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", found)[1] == os.getuid())


def _serve(server: socket.socket, made: Any) -> None:
    """Hands out what was made, as long as this process lives."""
    opens, (handle, *place) = made.__reduce_ex__(2)
    view = pickle.dumps((opens, handle.pages.identity, place))
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with peer:
            try:
                if _is_own_user(peer):
                    peer.sendall(struct.pack("I", len(view)) + view)
                    send_handle(peer, handle.pages.fileno(), os.getpid())
            except OSError:
                continue  # it went away


def _receive(name: str) -> tuple[Any] | None:
    """What the owner of the name shares; None where it is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        try:
            peer.connect(name)
        except ConnectionRefusedError:
            return None
        if not _is_own_user(peer):
            raise Error(f"another user has taken the name {name[1:]!r}, through which this job would share its data")
        try:
            size = struct.unpack("I", _exactly(peer, 4))[0]
            opens, identity, place = pickle.loads(_exactly(peer, size))
            fd = recv_handle(peer)
        except (EOFError, ConnectionResetError):
            return None
    return (opens(_pages.attach_fd(identity, fd), *place),)


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
