"""Messages between the ranks and the controller"""

import struct

HEADER = struct.Struct("!iiiq")
TENSOR, RESULT, ABORT, REJOIN, READY, STOP = range(1, 7)


def receive_exactly(connection, size):
    data = bytearray(size)
    view, received = memoryview(data), 0
    while received < size:
        count = connection.recv_into(view[received:])
        if count == 0:
            raise ConnectionError("the other end has closed the connection")
        received += count
    return data
