"""Starts two tensor-parallel ranks of the rollout engine and the trainer, and waits for the trainer"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def start(script, *arguments):
    # Large tensors go back to the system as soon as they are free
    allocator = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    environment = {**os.environ, **allocator, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, os.path.join(HERE, script), *arguments], env=environment)


def main():
    with tempfile.TemporaryDirectory() as folder:
        addresses = [os.path.join(folder, f"engine{rank}") for rank in range(2)]
        engines = [start("engine.py", str(rank), address) for rank, address in enumerate(addresses)]
        status = start("trainer.py", *addresses).wait()
        for engine in engines:
            engine.terminate()
        for engine in engines:
            engine.wait()
    if status:
        print(f"the trainer ended with exit code {status}", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
