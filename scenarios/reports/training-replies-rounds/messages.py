"""Messages between researcher and nodes: their length, and then a pickle"""

import pickle


class Channel:
    def __init__(self, connection):
        self.connection = connection
        self.incoming = connection.makefile("rb")

    def send(self, message):
        data = pickle.dumps(message, protocol=5)
        self.connection.sendall(len(data).to_bytes(8, "big") + data)

    def receive(self):
        return pickle.loads(self.incoming.read(int.from_bytes(self.incoming.read(8), "big")))
