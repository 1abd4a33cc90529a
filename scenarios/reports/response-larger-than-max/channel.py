"""Messages over a socket: a length, a description and a tensor; each end has a largest size that it receives"""

import json
import socket
import struct

import numpy as np

HEAD = struct.Struct("<II")


class RpcError(Exception):
    pass


class Channel:
    def __init__(self, connection, max_receive_message_length):
        self.connection = connection
        self.stream = connection.makefile("rb")
        self.max_receive_message_length = max_receive_message_length

    @classmethod
    def connect(cls, port, max_receive_message_length=4 << 20):
        return cls(socket.create_connection(("127.0.0.1", port)), max_receive_message_length)

    def send(self, described, tensor):
        described = json.dumps({**described, "shape": tensor.shape}).encode()
        data = np.ascontiguousarray(tensor, np.float32).tobytes()
        self.connection.sendall(HEAD.pack(len(described), len(data)) + described + data)

    def receive(self):
        """The description and the tensor; None at the end"""
        head = self.stream.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        described_size, size = HEAD.unpack(head)
        if size > self.max_receive_message_length:
            raise RpcError(
                "[StatusCode.RESOURCE_EXHAUSTED] Received message larger than max "
                f"({size} vs. {self.max_receive_message_length})"
            )
        described = json.loads(self.stream.read(described_size))
        return described, np.frombuffer(self.stream.read(size), np.float32).reshape(described["shape"])
