"""Connection strategies of the directory client"""

import datetime
import socket
import struct
import sys
import zlib


class CommunicationError(Exception):
    pass


class Connection:
    def __init__(self, address, restartable_tries=True):
        self.address = address
        self.strategy = RestartableStrategy(self, restartable_tries)

    def search(self, base, number):
        return self.strategy.send(f"{base} {number}\n".encode())


class SyncStrategy:
    def __init__(self, connection):
        self.connection = connection
        self.socket = self.stream = None

    def open(self):
        self.socket = socket.create_connection(self.connection.address, timeout=20)
        self.stream = self.socket.makefile("rb")

    def close(self):
        if self.socket is not None:
            self.stream.close()
            self.socket.close()
        self.socket = self.stream = None

    def get_response(self):
        response = bytearray()
        head = self.stream.read(8)
        if len(head) < 8:
            raise CommunicationError("session terminated by server")
        length, checksum = struct.unpack("!II", head)
        while len(response) < length:
            data = self.stream.read1(65536)
            if not data:
                raise CommunicationError(f"invalid response: {len(response)} of {length} bytes")
            response += data
        if zlib.crc32(response) != checksum:
            raise CommunicationError("checksum of response")
        return bytes(response)

    def send(self, message):
        if self.socket is None:
            self.open()
        self.socket.sendall(message)
        return self.get_response()


class RestartableStrategy(SyncStrategy):
    def __init__(self, connection, restartable_tries):
        super().__init__(connection)
        self.restartable_tries = restartable_tries  # True: without an end
        self.exception_history = []

    def _add_exception_to_history(self):
        if not isinstance(self.restartable_tries, bool) and len(self.exception_history) >= self.restartable_tries:
            self.exception_history.pop(0)
        kind, error, _ = sys.exc_info()
        self.exception_history.append((datetime.datetime.now(), kind, error))

    def send(self, message):
        counter = self.restartable_tries
        while counter is True or counter > 0:
            try:
                return super().send(message)
            except (OSError, CommunicationError):
                self._add_exception_to_history()
                self.close()
            if counter is not True:
                counter -= 1
        raise CommunicationError("restartable strategy failed")
