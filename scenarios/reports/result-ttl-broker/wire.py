"""Messages between the broker and its clients: a header of JSON and a body of bytes"""

import json
import socket
import struct

LENGTHS = struct.Struct("<II")


def pack(header, body=b""):
    head = json.dumps(header).encode()
    return LENGTHS.pack(len(head), len(body)) + head + body


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def call(self, header, body=b""):
        self.socket.sendall(pack(header, body))
        lengths = self.file.read(LENGTHS.size)
        if len(lengths) < LENGTHS.size:
            raise EOFError("the broker has closed the connection")
        head, body = LENGTHS.unpack(lengths)
        return json.loads(self.file.read(head)), self.file.read(body)

    def close(self):
        self.file.close()
        self.socket.close()
