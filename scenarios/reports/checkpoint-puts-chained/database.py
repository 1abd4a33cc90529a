"""Stands in for the database: stores the checkpoints of a connection, compressed, one transaction for each"""

import select
import socket
import sqlite3
import struct
import sys
import time
import zlib

PUT_S = 0.45


def read(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        connection, _ = server.accept()
    table = sqlite3.connect("checkpoints.sqlite")
    table.execute("CREATE TABLE IF NOT EXISTS checkpoints (number INTEGER PRIMARY KEY, data BLOB)")
    with connection, connection.makefile("rwb") as stream:
        try:
            while True:
                data = read(stream, struct.unpack("<Q", read(stream, 8))[0])
                start = time.monotonic()
                with table:
                    table.execute("INSERT INTO checkpoints (data) VALUES (?)", (zlib.compress(data, 1),))
                # the standby has to confirm it as well
                wait = start + PUT_S - time.monotonic()
                if wait > 0:
                    select.select([], [], [], wait)
                stream.write(b"+")
                stream.flush()
        except (EOFError, ConnectionError):
            table.close()


if __name__ == "__main__":
    main()
