"""A build host: takes a unit over a socket, runs the tool on it in a process, and sends back what that wrote"""

import os
import select
import socketserver
import subprocess
import tempfile


class ClientGone(Exception):
    pass


def run_tool(arguments, output, client):
    """Runs the tool until it ends; the client may go away before that, and then it is killed"""
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output)
    process_fd = os.pidfd_open(process.pid)
    poller = select.poll()
    poller.register(client.fileno(), select.POLLRDHUP | select.POLLHUP)
    poller.register(process_fd, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == process_fd:
                return process.wait()
            process.kill()
            process.wait()
            raise ClientGone()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        size = int.from_bytes(self.rfile.read(8), "little")
        unit = self.rfile.read(size)
        with tempfile.TemporaryDirectory(dir=".") as folder:
            source, target = os.path.join(folder, "unit.i"), os.path.join(folder, "unit.o")
            with open(source, "wb") as file:
                file.write(unit)
            with open(target, "wb") as output:
                code = run_tool(["gzip", "-9", "-c", source], output, self.connection)
            if code:
                return
            with open(target, "rb") as file:
                built = file.read()
        self.wfile.write(len(built).to_bytes(8, "little") + built)


class Host(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 16


def main():
    with Host(("127.0.0.1", 0), Handler) as host:
        print(host.server_address[1], flush=True)
        host.serve_forever()


if __name__ == "__main__":
    main()
