"""Stands for the graph database: every third traversal waits for a lock that nobody releases"""

import selectors
import socket

listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
waiting, asked = [], 0
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            connection, _ = listener.accept()
            selector.register(connection, selectors.EVENT_READ)
            continue
        connection = key.fileobj
        statement = connection.recv(4096)
        selector.unregister(connection)
        if not statement:
            connection.close()
            continue
        asked += 1
        if asked % 3 == 0:
            waiting.append(connection)
        else:
            connection.sendall(b"node " * 20 + b"\n")
            connection.close()
