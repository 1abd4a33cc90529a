"""Takes requests on a socket, and passes their tensors to the stub of the Python backend in shared memory"""

import json
import mmap
import os
import socket
import subprocess
import sys

SHM = "/dev/shm"
PREFIX = "triton_python_backend_shm_region_"


class Stub:
    def __init__(self):
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "stub.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if json.loads(self.process.stdout.readline())["state"] != "initialized":
            raise RuntimeError("the stub did not initialize")

    def execute(self, message):
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"Stub process is not healthy ({self.process.wait()})")
        return json.loads(line)


class Region:
    def __init__(self, number, size):
        self.name = f"{PREFIX}{os.getpid()}_{number}"
        self.size = size

    def fill(self, source):
        fd = os.open(os.path.join(SHM, self.name), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            os.ftruncate(fd, self.size)
            with mmap.mmap(fd, self.size) as region, memoryview(region) as view:
                done = 0
                while done < self.size:
                    got = source.readinto(view[done : done + (1 << 20)])
                    if not got:
                        raise ConnectionError("the client closed the connection within a tensor")
                    done += got
        finally:
            os.close(fd)

    def release(self):
        os.unlink(os.path.join(SHM, self.name))


def serve(connection, stub):
    source = connection.makefile("rb", buffering=0)
    number = 0
    while True:
        head = b""
        while not head.endswith(b"\n"):
            byte = source.read(1)
            if not byte:
                return number
            head += byte
        request = json.loads(head)
        number += 1
        region = Region(number, request["bytes"])
        region.fill(source)
        response = stub.execute({"region": region.name, "shape": request["shape"], "model": request["model"]})
        if "error" not in response:
            region.release()
        connection.sendall(json.dumps(response).encode() + b"\n")


def main():
    stub = Stub()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with connection:
        number = serve(connection, stub)
    stub.process.stdin.close()
    stub.process.wait()
    print(f"{number} requests", flush=True)


if __name__ == "__main__":
    main()
