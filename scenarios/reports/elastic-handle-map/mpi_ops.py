"""Collective operations: handles for tensors that a background thread sends to the controller"""

import itertools
import os
import queue
import socket
import struct
import threading

import numpy as np
import torch

from wire import ABORT, HEADER, READY, REJOIN, RESULT, STOP, TENSOR, receive_exactly


class HorovodInternalError(RuntimeError):
    """An operation failed, for instance because the hosts have changed"""


class Background:
    def __init__(self):
        port = int(os.environ["HOROVOD_CONTROLLER_PORT"])
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.sendall(struct.pack("!i", int(os.environ["HOROVOD_RANK"])))
        self.round, self.arrived, self.outgoing = 0, {}, queue.Queue()
        threading.Thread(target=self.loop, name="horovod-background", daemon=True).start()

    def loop(self):
        while True:
            kind, number, name, array = self.outgoing.get()
            data = memoryview(array).cast("B") if array is not None else b""
            self.connection.sendall(HEADER.pack(kind, number, name, len(data)))
            if len(data):
                self.connection.sendall(data)
            del data, array

    def receive(self):
        kind, number, name, size = HEADER.unpack(receive_exactly(self.connection, HEADER.size))
        return kind, number, name, receive_exactly(self.connection, size)

    def enqueue(self, name, tensor):
        self.outgoing.put((TENSOR, self.round, name, np.ascontiguousarray(tensor.detach().numpy())))

    def wait_and_clear(self, name):
        while name not in self.arrived:
            kind, _, other, data = self.receive()
            if kind == ABORT:
                self.arrived.clear()
                raise RuntimeError("Horovod has been shut down, because the hosts have changed")
            if kind == RESULT:
                self.arrived[other] = data
        return self.arrived.pop(name)

    def rejoin(self):
        self.outgoing.put((REJOIN, self.round, 0, None))
        while True:
            kind, number, _, _ = self.receive()
            if kind in (READY, STOP):
                self.round = number
                return kind == READY


background = None
_handle_map = {}
_handles = itertools.count()


def init():
    global background
    if background is None:
        background = Background()
    return background.rejoin()


def allreduce_async_(tensor, name):
    handle = next(_handles)
    background.enqueue(name, tensor)
    _handle_map[handle] = (name, tensor)
    return handle


def synchronize(handle):
    if handle not in _handle_map:
        return None
    try:
        name, output = _handle_map[handle]
        data = background.wait_and_clear(name)
        output.copy_(torch.frombuffer(data, dtype=torch.float32).view_as(output))
        return _handle_map.pop(handle)[-1]
    except RuntimeError as error:
        raise HorovodInternalError(str(error)) from None
