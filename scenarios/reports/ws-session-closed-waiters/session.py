"""A session over a connection of frames: a thread receives them, and the caller takes them when it likes"""

import concurrent.futures
import queue
import socket
import struct
import threading

HEAD = struct.Struct("!BI")
BINARY, CLOSE = 2, 8


class ShouldClose(Exception):
    pass


class WebSocketDisconnect(Exception):
    pass


class Stream:
    def __init__(self, connection):
        self.connection, self.file = connection, connection.makefile("rb")

    def read_frame(self):
        head = self.file.read(HEAD.size)
        if len(head) < HEAD.size:
            return CLOSE, b""
        opcode, length = HEAD.unpack(head)
        return opcode, self.file.read(length)

    def write_frame(self, opcode, data):
        self.connection.sendall(HEAD.pack(opcode, len(data)) + data)

    def close(self):
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.file.close()
        self.connection.close()


class WebSocketSession:
    def __init__(self, stream, queue_size=64):
        self.stream = stream
        self._events = queue.Queue(queue_size)
        self._should_close = threading.Event()
        self._background_receive_task = threading.Thread(target=self._background_receive, name="background_receive")

    def __enter__(self):
        self._background_receive_task.start()
        return self

    def __exit__(self, *_):
        self.close()

    def receive_bytes(self, timeout=None):
        opcode, data = self._events.get(timeout=timeout)
        if opcode == CLOSE:
            raise WebSocketDisconnect
        return data

    def send_bytes(self, data):
        self.stream.write_frame(BINARY, data)

    def close(self):
        self._should_close.set()
        try:
            self.stream.write_frame(CLOSE, b"")
        except OSError:
            pass
        self.stream.close()
        self._background_receive_task.join()

    def _background_receive(self):
        try:
            while not self._should_close.is_set():
                opcode, data = self._wait_until_closed(self.stream.read_frame)
                self._events.put((opcode, data))
                if opcode == CLOSE:
                    break
        except ShouldClose:
            pass
        except OSError:
            self._events.put((CLOSE, b""))

    def _wait_until_closed(self, function, *args):
        """What the function returns, unless the session is closed before"""
        executor = concurrent.futures.ThreadPoolExecutor()
        wait_closed_task = executor.submit(self._should_close.wait)
        todo_task = executor.submit(function, *args)
        tasks = (todo_task, wait_closed_task)
        done, _ = concurrent.futures.wait(tasks, return_when=concurrent.futures.FIRST_COMPLETED)
        executor.shutdown(False)
        if wait_closed_task in done:
            raise ShouldClose
        return todo_task.result()


def connect_ws(port):
    return WebSocketSession(Stream(socket.create_connection(("127.0.0.1", port))))
