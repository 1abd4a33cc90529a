"""A bulletin board: each caller's session runs in a process of its own, which talks with the server over two pipes."""

import hashlib
import multiprocessing as mp
import select
import socket
import threading

CALLERS = 200


class TerminalProcess:
    """The server's side of a session, in the registry by its number."""

    registry = {}

    def __init__(self, number, client):
        self.number, self.client = number, client
        self.master_pipe, slave_pipe = mp.Pipe()
        self.events, slave_events = mp.Pipe(duplex=False)
        self.process = mp.Process(target=session, args=(number, slave_pipe, slave_events), daemon=True)
        self.process.start()
        slave_pipe.close()
        self.slave_events = slave_events
        self.registry[number] = self

    def end(self):
        self.process.join()
        self.process.close()
        self.client.close()


def session(number, pipe, events):
    """The matrix: asks for the handle and the password, and plays a login animation."""
    name, password = pipe.recv().split()
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), name.encode(), 520_000)
    pipe.send(f"welcome {name}, caller {number}: {digest.hex()[:8]}\r\n")
    pipe.close()


def callers(port):
    for number in range(CALLERS):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                line.sendall(f"guest{number} secret\r\n".encode())
                line.recv(200)
        except OSError:
            return


def serve(server):
    active = []
    for number in range(CALLERS):
        client, _ = server.accept()
        terminal = TerminalProcess(number, client)
        active.append(terminal)
        while active:
            ready, _, _ = select.select([client, *(one.master_pipe for one in active)], [], [], 30)
            if client in ready and (typed := client.recv(200)):
                terminal.master_pipe.send(typed.decode())
            for one in [one for one in active if one.master_pipe in ready]:
                one.client.sendall(one.master_pipe.recv().encode())
                one.end()
                active.remove(one)
        if number % 10 == 0:
            print(f"caller {number} left, {len(TerminalProcess.registry)} terminals known", flush=True)


def main():
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=callers, args=(server.getsockname()[1],), daemon=True).start()
        serve(server)


if __name__ == "__main__":
    main()
