"""The agent of a node: starts the ranks, keeps the segments of their checkpoints, and watches how they end"""

import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORLD_SIZE = 2


class CheckpointSaver:
    """Segments outlive a rank that fails, so that the next one can load its state from memory"""

    def __init__(self, folder):
        self.path = os.path.relpath(os.path.join(folder, "saver.sock"))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.segments = {}

    def answer(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rw") as stream:
            request = json.loads(stream.readline())
            if request["rank"] not in self.segments:
                path = f"/dev/shm/checkpoint_{os.getpid()}_{request['rank']}"
                fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                os.ftruncate(fd, request["bytes"])
                os.close(fd)
                self.segments[request["rank"]] = path
                print(f"[agent] segment of {request['bytes'] / 2**20:.0f} MiB for rank {request['rank']}", flush=True)
            stream.write(json.dumps({"path": self.segments[request["rank"]]}) + "\n")
            stream.flush()

    def close(self):
        self.listener.close()
        for path in self.segments.values():
            os.unlink(path)


def main():
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        saver, ranks = CheckpointSaver(folder), {}
        selector = selectors.DefaultSelector()
        selector.register(saver.listener, selectors.EVENT_READ)
        for rank in range(WORLD_SIZE):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(WORLD_SIZE),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "INIT_FILE": os.path.join(folder, "init"),
                "SAVER_SOCKET": saver.path,
            }
            ranks[rank] = subprocess.Popen([sys.executable, "-u", os.path.join(HERE, "train.py")], env=environment)
        failed = None
        while failed is None and any(process.poll() is None for process in ranks.values()):
            for _ in selector.select(timeout=0.5):
                saver.answer()
            failed = next((rank for rank, process in ranks.items() if process.poll()), None)
        if failed is not None:
            print(f"[agent] worker {failed} failed with exit code {ranks[failed].returncode}", flush=True)
        for process in ranks.values():
            if process.poll() is None:
                process.terminate()
            process.wait()
        saver.close()
    return 0 if failed is None else 1


if __name__ == "__main__":
    sys.exit(main())
