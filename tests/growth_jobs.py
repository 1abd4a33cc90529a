"""Jobs that grow in one known way: `growth_jobs.py JOB SECONDS MIB_A_SECOND SEED`."""

import ctypes
import mmap
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20


def steps(seconds, apart):
    """Counts from 0, `apart` seconds from one to the next."""
    began = time.monotonic()
    number = 0
    while time.monotonic() - began < seconds:
        yield number
        number += 1
        time.sleep(max(0.0, began + number * apart - time.monotonic()))


def python_objects(seconds, rate, draw):
    kept = []
    for _ in steps(seconds, 0.1):
        kept.extend({"id": number, "text": str(draw.random())} for number in range(int(rate * MIB * 0.1 / 350)))


def python_bytes(seconds, rate, draw):
    size = draw.randint(2000, 60_000)
    kept = {}
    for number in steps(seconds, 0.1):
        for part in range(max(1, int(rate * MIB * 0.1 / size))):
            kept[number, part] = bytes(size)


def native_blocks(seconds, rate, draw):
    import numpy as np

    size = draw.choice([20_000, 200_000, 4_000_000])
    kept = []
    owed = 0.0
    for _ in steps(seconds, 0.1):
        owed += rate * MIB * 0.1
        while owed >= size:
            kept.append(np.ones(size // 8))
            owed -= size


def tensors(seconds, rate, draw):
    import torch

    size = draw.choice([100_000, 1_000_000, 8_000_000])
    kept = []
    owed = 0.0
    for _ in steps(seconds, 0.1):
        owed += rate * MIB * 0.1
        while owed >= size:
            kept.append(torch.ones(size // 4))
            owed -= size


def tensors_loop(seconds, rate, draw):
    """A training loop that keeps its predictions, and neither sleeps nor loads."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2048))
    optimizer = torch.optim.Adam(model.parameters())
    kept, began, made = [], time.monotonic(), 0
    while time.monotonic() - began < seconds:
        loss = model(torch.randn(64, 256)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if made < rate * MIB * (time.monotonic() - began):
            with torch.no_grad():
                kept.append(model(torch.randn(64, 256)))
            made += 64 * 2048 * 4


def freed(seconds, rate, draw):
    """Many small blocks, let go of but for a few at the end."""
    import numpy as np

    size = draw.choice([2000, 20_000, 60_000])
    pins = []
    count = int(rate * MIB * 8 / size)
    blocks = []
    for _ in steps(8, 0.1):
        for _ in range(count // 80):
            blocks.append(np.ones(size // 8))
    pins.append(blocks[-1])
    blocks.clear()
    for _ in steps(seconds - 8, 0.1):
        pass


def thread_arenas(seconds, rate, draw):
    import numpy as np

    size = draw.choice([3000, 30_000])

    def work():
        for _ in steps(seconds, 1.0):
            blocks = [np.ones(size // 8) for _ in range(int(rate * 6 * MIB / size))]
            pin = blocks[-1]
            del blocks
            held.append(pin)

    held = []
    threads = []
    for _ in range(draw.randint(6, 10)):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        time.sleep(0.5)
    for thread in threads:
        thread.join()


class Rows:
    def __init__(self, count, seconds):
        self.rows = [{"id": number, "text": f"row {number}"} for number in range(count)]
        self.seconds = seconds

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return len(self.rows[index]["text"])


def fork_workers(seconds, rate, draw):
    import torch.utils.data

    count = draw.randint(300_000, 500_000)
    rows = Rows(count, 0.0)
    workers = draw.choice([2, 3])
    rows.seconds = workers * seconds / count
    loader = torch.utils.data.DataLoader(rows, batch_size=500, num_workers=workers, shuffle=draw.random() < 0.5)
    for _ in loader:
        pass


def queue_backlog(seconds, rate, draw):
    """A worker makes shared batches faster than anyone takes them, or they are taken and kept."""
    import torch
    import torch.multiprocessing

    context = torch.multiprocessing.get_context("fork")
    queue = context.Queue()
    size, taken = draw.choice([500_000, 2_000_000]), draw.random() < 0.5
    producer = context.Process(target=_produce, args=(queue, seconds, rate, size), daemon=True)
    producer.start()
    kept = []
    for _ in steps(seconds, 0.05):
        while taken and not queue.empty():
            kept.append(queue.get())
    producer.kill()
    producer.join()


def _produce(queue, seconds, rate, size):
    import torch

    for _ in steps(seconds + 5, size / (rate * MIB)):
        queue.put(torch.ones(size // 4).share_memory_())


def mapped_dataset(seconds, rate, draw):
    import numpy as np

    size = int(rate * 4 * seconds) * MIB // 4
    with tempfile.NamedTemporaryFile() as file:
        block = os.urandom(MIB)
        for _ in range(size // MIB):
            file.write(block)
        file.flush()
        data = np.memmap(file.name, dtype=np.uint8, mode="r")
        per_step = int(rate * MIB * 0.1)
        for number in steps(seconds, 0.1):
            start = number * per_step % size
            data[start : start + per_step : 4096].sum()


def page_cache(seconds, rate, draw):
    with tempfile.TemporaryDirectory() as folder:
        block = os.urandom(MIB)
        for number in steps(seconds, 0.5):
            with open(pathlib.Path(folder) / str(number), "wb") as file:
                for _ in range(int(rate)):
                    file.write(block)


def mappings(seconds, rate, draw):
    kept = []
    for _ in steps(seconds, 0.1):
        for _ in range(int(rate * 8)):
            one = mmap.mmap(-1, draw.choice([4096, 16_384]))
            one[0] = 1
            kept.append(one)


def descriptors(seconds, rate, draw):
    kept = []
    for _ in steps(seconds, 0.1):
        for _ in range(max(1, int(rate / 4))):
            kept.append(open(__file__, "rb", buffering=draw.choice([0, 4096])))


def children(seconds, rate, draw):
    apart = draw.uniform(0.6, 1.5)
    started = [
        subprocess.Popen([sys.executable, "-c", "import time; kept = bytes(range(256)) * (8 << 12); time.sleep(600)"])
        for _ in steps(seconds, apart)
    ]
    for one in started:
        one.kill()
        one.wait()


def page_tables(seconds, rate, draw):
    """Reading one page of each 2 MiB of untouched private memory takes a page of page tables, and nothing else."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
    size = int(rate * seconds * MIB / 4096) * (2 * MIB)
    area = mmap.mmap(-1, size, flags=flags)
    area.madvise(15)  # MADV_NOHUGEPAGE
    place = 0
    for _ in steps(seconds, 0.1):
        for _ in range(int(rate * MIB * 0.1 / 4096)):
            if place < size:
                area[place]
                place += 2 * MIB


def warm_up(seconds, rate, draw):
    import torch

    cache = {}
    grows = seconds * draw.uniform(0.2, 0.4)
    began = time.monotonic()
    for number in steps(seconds, 0.1):
        if time.monotonic() - began < grows:
            cache[number] = torch.ones(int(rate * 2 * MIB * 0.1 / 4))
        torch.ones(1000).sum()


def plateau(seconds, rate, draw):
    import numpy as np

    cache = []
    first, last = seconds * draw.uniform(0.35, 0.45), seconds * draw.uniform(0.6, 0.7)
    began = time.monotonic()
    for _ in steps(seconds, 0.1):
        if first < time.monotonic() - began < last:
            cache.append(np.ones(int(rate * 2 * MIB * 0.1 / 8)))


def still(seconds, rate, draw):
    import torch

    weights = torch.ones(int(rate * 4 * MIB))
    for _ in steps(seconds, 0.1):
        weights[: 1 << 16].add_(1.0)


def train(seconds, rate, draw):
    """A loader with workers and a model, as it should be."""
    import torch
    import torch.utils.data

    data = torch.utils.data.TensorDataset(torch.randn(20_000, 128), torch.randn(20_000, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=draw.choice([0, 2]), persistent_workers=False)
    model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters())
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for given, wanted in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(given), wanted).backward()
            optimizer.step()
            if time.monotonic() - began > seconds:
                break


def trim(_seconds, _rate, _draw):
    """Prints what the agent's look at malloc says, and what a trim gave back."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python/tests"))
    import agent_parts
    import numpy as np
    import receiver

    memory = agent_parts.common(receiver.library()).load("memory")

    libc = ctypes.CDLL(None)

    def check(name):
        figures = {"anonymous": 0}
        memory._malloc(figures)
        before = memory._resident()[0]
        libc.malloc_trim(0)
        print(name, figures["malloc_trimmable"] / MIB, (before - memory._resident()[0]) / MIB)

    for size in (3000, 20_000, 60_000):
        blocks = [np.ones(size // 8) for _ in range(200 * MIB // size)]
        pin = blocks[-1]
        blocks.clear()
        check(f"all-of-{size}")
        blocks = [np.ones(size // 8) for _ in range(200 * MIB // size)]
        del blocks[::2], pin
        if size > 4096:
            check(f"holes-of-{size}")
        blocks.clear()
        libc.malloc_trim(0)


if __name__ == "__main__":
    job, seconds, rate, seed = sys.argv[1:]
    globals()[job.replace("-", "_")](float(seconds), float(rate), random.Random(int(seed)))
