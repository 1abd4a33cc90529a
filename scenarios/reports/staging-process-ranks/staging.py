"""Writes checkpoints from a process of its own: a rank copies its state into shared memory, and goes on."""

import json
import os
import subprocess
import sys
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

import numpy as np


class StagingProcess:
    """Made at the first save; later ones use the same buffer, once it is written."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.process = self.buffer = None

    def save(self, step, state):
        total = sum(tensor.nbytes for tensor in state.values())
        if self.process is None:
            self.buffer = SharedMemory(self.name, True, total)
            self.process = subprocess.Popen(
                [sys.executable, __file__, self.folder, self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        else:
            self.wait()
        entries, offset = {}, 0
        for key, tensor in state.items():
            part = np.frombuffer(self.buffer.buf, np.uint8, tensor.nbytes, offset)
            part[:] = tensor.contiguous().view(-1).numpy().view(np.uint8)
            entries[key] = [offset, tensor.nbytes]
            offset += tensor.nbytes
            del part
        self.process.stdin.write(json.dumps({"step": step, "entries": entries}) + "\n")
        self.process.stdin.flush()

    def wait(self):
        return json.loads(self.process.stdout.readline())

    def close(self):
        if self.process is not None:
            self.wait()
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.buffer.close()
            self.buffer.unlink()


def main():
    """The process: one line in, a checkpoint on disk, one line out."""
    folder, name = sys.argv[1:]
    buffer = SharedMemory(name)
    # It belongs to the rank: this process's tracker must not unlink it.
    resource_tracker.unregister(f"/{name}", "shared_memory")
    for line in sys.stdin:
        request = json.loads(line)
        path = os.path.join(folder, f"{name}.part")
        with open(path, "wb") as file:
            for start, size in request["entries"].values():
                for at in range(start, start + size, 1 << 20):
                    file.write(buffer.buf[at : min(at + (1 << 20), start + size)])
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, os.path.join(folder, f"{name}.ckpt"))
        print(json.dumps({"step": request["step"]}), flush=True)
    buffer.close()


if __name__ == "__main__":
    main()
