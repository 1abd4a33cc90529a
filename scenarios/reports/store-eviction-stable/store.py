"""The object store of a node: objects by id, up to a capacity; the least recently used ones go when room is wanted

A request is an operation (p or g), an id of 16 bytes, and the length of what follows; the answer is a length and data.
"""

import argparse
import collections
import os
import selectors
import socket
import struct

HEADER, LENGTH = struct.Struct("<c16sQ"), struct.Struct("<Q")


def receive(connection, size):
    """Exactly that many bytes, or None at the end of the connection"""
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if count == 0:
            return None
        filled += count
    return data


class PlasmaStore:
    def __init__(self, capacity):
        self.capacity, self.used = capacity, 0
        self.objects = collections.OrderedDict()

    def put(self, object_id, data):
        if self.used + len(data) > self.capacity:
            self.evict(max(len(data), self.capacity // 5))
        self.objects[object_id] = data
        self.used += len(data)

    def get(self, object_id):
        self.objects.move_to_end(object_id)
        return self.objects[object_id]

    def evict(self, wanted):
        before, freed = len(self.objects), 0
        while self.objects and freed < wanted:
            _, data = self.objects.popitem(last=False)
            freed += len(data)
        self.used -= freed
        print(f"evicting {before - len(self.objects)} objects to free up {freed} bytes", flush=True)


class PlasmaClient:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)

    def put(self, data):
        object_id = os.urandom(16)
        self.socket.sendall(HEADER.pack(b"p", object_id, len(data)))
        self.socket.sendall(data)
        receive(self.socket, LENGTH.size)
        return object_id

    def get(self, object_id):
        self.socket.sendall(HEADER.pack(b"g", object_id, 0))
        (length,) = LENGTH.unpack(receive(self.socket, LENGTH.size))
        return receive(self.socket, length)

    def close(self):
        self.socket.close()


def serve(connection, store):
    """One request of a client; whether the client is still there"""
    header = receive(connection, HEADER.size)
    if header is None:
        return False
    operation, object_id, length = HEADER.unpack(header)
    if operation == b"p":
        store.put(object_id, receive(connection, length))
        connection.sendall(LENGTH.pack(0))
    else:
        data = store.get(object_id)
        connection.sendall(LENGTH.pack(len(data)))
        connection.sendall(data)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--memory", type=int, required=True)
    options = parser.parse_args()
    store, selector = PlasmaStore(options.memory), selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(options.socket)
    listener.listen()
    selector.register(listener, selectors.EVENT_READ)
    print(f"allowing the store to use up to {options.memory} bytes of memory", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif not serve(key.fileobj, store):
                selector.unregister(key.fileobj)
                key.fileobj.close()


if __name__ == "__main__":
    main()
