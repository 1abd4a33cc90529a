"""Small jobs for first_line.py, of a few seconds each: `first_line_jobs.py JOB`.

They say "ready" once Python runs, and go on when a line comes on standard input, or its end.
"""

import array
import collections
import concurrent.futures
import ctypes
import functools
import gc
import json
import mmap
import multiprocessing
import multiprocessing.shared_memory
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
STEPS = 60
APART = 0.1
EACH = 4 * MIB

RECENT = collections.deque()
BY_KEY = {}


def steps(count=STEPS):
    """Counts to `count`, a tenth of a second from one to the next.

    Waits are not made up for: what a machine that is busy adds would else be taken from the job's own time.
    """
    for number in range(count):
        yield number
        time.sleep(APART)


# Jobs that grow to their end by about 240 MiB.


def list_of_bytes():
    kept = []
    for _ in steps():
        kept.append(b"x" * EACH)


def many_small_objects():
    kept = []
    for number in steps():
        kept.extend({"id": number, "text": str(part)} for part in range(12_000))


def arrays_in_place():
    import numpy as np

    kept = [None] * STEPS
    for number in steps():
        kept[number] = np.ones(EACH // 8)


def tensors_in_list():
    import torch

    kept = []
    for _ in steps():
        kept.append(torch.ones(EACH // 4))


def dict_by_key():
    for number in steps():
        for part in range(64):
            BY_KEY[number, part] = bytes([part]) * (EACH // 64)


def native_leak():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    for _ in steps():
        for _ in range(64):
            ctypes.memset(malloc(ctypes.c_size_t(EACH // 64)), 1, EACH // 64)


def extension_grows():
    database = sqlite3.connect(":memory:")
    database.execute("create table kept (value blob)")
    for _ in steps():
        database.executemany("insert into kept values (?)", [(b"x" * (EACH // 32),) for _ in range(32)])


def bytearray_grows():
    kept = bytearray()
    for _ in steps():
        kept += b"x" * EACH


def array_grows():
    kept = array.array("d")
    for number in steps():
        kept.extend([float(number)] * (EACH // 8))


def deque_unbounded():
    for number in steps():
        RECENT.append((number, b"x" * EACH))


def anonymous_maps():
    kept = []
    for _ in steps():
        area = mmap.mmap(-1, EACH, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.write(b"x" * EACH)
        kept.append(area)


def child_grows():
    subprocess.run([sys.executable, __file__, "list-of-bytes"], check=True, stdin=subprocess.DEVNULL)


def two_children_grow():
    children = [multiprocessing.get_context("spawn").Process(target=list_of_bytes) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()


def grows_in_stairs():
    kept = []
    for number in steps():
        if number % 10 == 5:
            kept.append(b"x" * (10 * EACH))


def linked_objects():
    class Node:
        def __init__(self, before):
            self.before, self.data = before, b"x" * (EACH // 8)

    last = None
    for _ in steps():
        for _ in range(8):
            last = Node(last)


# Jobs that are well.


def import_torch():
    import torch  # noqa: F401


def import_numpy():
    import numpy  # noqa: F401


def one_batch():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    model(torch.randn(256, 1024)).square().mean().backward()


def train_loop():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in steps(40):
        loss = model(torch.randn(64, 1024)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class Numbers:
    def __len__(self):
        return 256

    def __getitem__(self, index):
        import torch

        return torch.full((3, 64, 64), float(index))


def loader_epoch():
    import torch

    for _ in range(2):
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=2):
            batch.mean()


def checkpoint_saved_and_loaded():
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.pt"
        torch.save({str(n): torch.ones(4 * MIB) for n in range(16)}, path)
        torch.load(path)


def checkpoint_loaded_at_the_end():
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.npy"
        np.save(path, np.ones(40 * MIB))
        for _ in steps(40):
            pass
        np.load(path)


def data_loaded_then_used():
    import numpy as np

    data = [np.ones(EACH // 8) for _ in range(60)]
    for number in steps(40):
        data[number].sum()


def large_temporary():
    import numpy as np

    np.ones(40 * MIB).sum()
    for _ in steps(30):
        pass


def sawtooth():
    kept = []
    for number in steps():
        if number % 15 == 0:
            kept.clear()
        kept.append(b"x" * (3 * EACH))


def buffer_filled_at_once():
    import numpy as np

    frames = np.ones(32 * MIB)
    for number in steps(40):
        frames[number] = 2.0


def buffer_filled_by_steps():
    import numpy as np

    frames = np.zeros((STEPS, EACH // 8))
    for number in steps():
        frames[number] = 1.0


def warm_up_that_flattens():
    kept = []
    for number in steps():
        kept.append(b"x" * int(10 * EACH * 0.85**number))


def bounded_deque():
    recent = collections.deque(maxlen=15)
    for _ in steps():
        recent.append(b"x" * (2 * EACH))


def bounded_cache():
    @functools.lru_cache(maxsize=15)
    def made(number):
        return bytes([number]) * (2 * EACH)

    for number in steps():
        made(number)


def subprocesses():
    for _ in range(15):
        subprocess.run([sys.executable, "-S", "-c", "x = b'x' * (64 << 20)"], check=True)


def thread_pool():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: sum(b"x" * (8 * MIB)), range(30)))


def squared(number):
    return len(b"x" * (4 * MIB)) * number


def pool_map():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        for _ in steps(20):
            pool.map(squared, range(16))


def page_cache():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "data"
        with path.open("wb") as file:
            for _ in steps(40):
                file.write(b"x" * (2 * EACH))
        with path.open("rb") as file:
            while file.read(EACH):
                pass


def shared_memory_bounded():
    segment = multiprocessing.shared_memory.SharedMemory(create=True, size=30 * EACH)
    try:
        for number in steps(50):
            start = number % 30 * EACH
            segment.buf[start : start + EACH] = b"x" * EACH
    finally:
        segment.close()
        segment.unlink()


def mapped_dataset():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "data"
        with path.open("wb") as file:
            for _ in range(STEPS):
                file.write(b"x" * EACH)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as area:
            for number in steps():
                sum(area[number * EACH : (number + 1) * EACH : 4096])


def collector_at_work():
    for _ in steps(40):
        for _ in range(20):
            circle = [b"x" * (EACH // 16)]
            circle.append(circle)
    gc.collect()


def json_round_trip():
    text = json.dumps([{"id": number, "name": str(number)} for number in range(200_000)])
    for _ in range(3):
        json.loads(text)


def waits():
    for _ in steps(40):
        pass


def over_at_once():
    pass


def computes():
    began = time.monotonic()
    total = 0
    while time.monotonic() - began < 4.0:
        total += sum(range(10_000))


def small_growth():
    kept = []
    for _ in steps():
        kept.append(b"x" * (128 << 10))


def main():
    job = globals()[sys.argv[1].replace("-", "_")]
    print("ready", flush=True)
    sys.stdin.readline()
    job()


if __name__ == "__main__":
    main()
