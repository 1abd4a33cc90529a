"""The jobs that truth.py watches: each of a known shape, and holding still where it says so."""

import json
import mmap
import os
import random
import signal
import time

PAGE = 4096
MIB = 1 << 20
HUGE = 14  # MADV_HUGEPAGE


class Stage:
    """Tells the harness where the job is, and waits for it."""

    def __init__(self, folder):
        self.folder = folder

    def reached(self, name, **facts):
        path = os.path.join(self.folder, name)
        with open(path + ".tmp", "w") as file:
            json.dump(facts, file)
        os.rename(path + ".tmp", path)
        while not os.path.exists(path + ".seen"):
            time.sleep(0.02)

    def tell(self, name):
        open(os.path.join(self.folder, name), "w").close()

    def wait(self, name):
        while not os.path.exists(os.path.join(self.folder, name)):
            time.sleep(0.02)


def block(size, huge):
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if huge:
        memory.madvise(HUGE)
    write(memory, range(size // PAGE))
    return memory


def write(memory, pages):
    for page in pages:
        memory[page * PAGE] = (memory[page * PAGE] + 1) & 255


def children(number, each):
    pids = []
    for index in range(number):
        pid = os.fork()
        if pid == 0:
            try:
                each(index)
            finally:
                os._exit(0)
        pids.append(pid)
    return pids


def leave(pids):
    """All at once, so that the last look at the job is not at what is left of it."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def job(name, folder, size, huge):
    stage = Stage(folder)
    pages = size // PAGE

    def rest():
        stage.wait("end")

    def child_of(work, index):
        stage.wait("go")
        work(index)
        stage.tell(f"done{index}")
        rest()

    def with_children(number, work=lambda index: None, then=lambda: None):
        pids = children(number, lambda index: child_of(work, index))
        stage.reached("forked", parent=os.getpid(), children=pids)
        stage.tell("go")
        for index in range(number):
            stage.wait(f"done{index}")
        then()
        stage.reached("ready", parent=os.getpid(), children=pids)
        leave(pids)

    if name == "family":
        memory = block(size, huge)
        time.sleep(1.2)
        with_children(10)
    elif name == "halves":
        memory = block(size, huge)
        time.sleep(1.2)

        def half(index):
            if index < 2:
                write(memory, range(pages // 2))
            else:
                write(memory, random.Random(index).sample(range(pages), pages // 2))

        with_children(4, half)
    elif name in ("parent", "parent2"):
        memory = block(size, huge)
        time.sleep(1.2)

        def change():
            write(memory, range(pages // 4))
            memory.madvise(mmap.MADV_DONTNEED, size // 2, size // 4)

        with_children(1 if name == "parent" else 2, then=change)
    elif name == "segments":
        common = mmap.mmap(-1, size // 2)
        path = os.path.join("/dev/shm", f"truth_{os.getpid()}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        os.ftruncate(descriptor, size // 2)

        def touch(index):
            segment = mmap.mmap(descriptor, size // 2)
            quarter = pages // 8
            write(segment, range(index * quarter, (index + 2) * quarter))
            write(common, range(index * quarter, (index + 1) * quarter))
            touch.kept = segment

        with_children(3, touch)
    elif name == "memfd":
        descriptor = os.memfd_create("truth")
        os.ftruncate(descriptor, size)
        memory = mmap.mmap(descriptor, size)
        write(memory, range(pages // 2))
        with_children(1, lambda index: write(memory, range(pages // 4, pages // 4 * 3)))
    elif name == "files":
        path = os.path.join(folder, "data")
        with open(path, "wb") as file:
            for _ in range(size // (2 * MIB)):
                file.write(os.urandom(MIB))
        descriptor = os.open(path, os.O_RDONLY)
        memory = mmap.mmap(descriptor, size // 2, prot=mmap.PROT_READ)

        def read(index):
            quarter = pages // 8
            return sum(memory[page * PAGE] for page in range(index * quarter, min((index + 2) * quarter, pages // 2)))

        with_children(4, read)
    elif name == "loader":
        from torch.utils.data import DataLoader

        data = Names()
        stage.reached("forked", parent=os.getpid(), children=[])
        loader = DataLoader(data, batch_size=512, num_workers=4, shuffle=True, multiprocessing_context="fork")
        batches = iter(loader)
        for _ in range(1800):
            next(batches)
        time.sleep(1.0)
        stage.reached("ready", parent=os.getpid(), children=[worker.pid for worker in batches._workers])
        leave([worker.pid for worker in batches._workers])
    elif name == "churn":
        churn(stage, size)


class Names:
    def __init__(self):
        self.names = [f"sample number {number}" for number in range(2_000_000)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return len(self.names[index])


def churn(stage, size):
    """Until it is told to end: a parent of 200 MiB; children that copy, grow, fork on, and go."""
    memory = block(size // 5, False)
    chance = random.Random(1)
    alive = {}
    while not os.path.exists(os.path.join(stage.folder, "end")):
        if len(alive) < 12:
            seed = chance.random()
            pid = os.fork()
            if pid == 0:
                life(memory, random.Random(seed))
                os._exit(0)
            alive[pid] = True
        write(memory, chance.sample(range(len(memory) // PAGE), 500))
        time.sleep(0.02)
        while alive:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            alive.pop(pid, None)
    for pid in alive:
        os.waitpid(pid, 0)


def life(memory, chance, depth=0):
    end = time.monotonic() + chance.uniform(0.05, 3.0)
    own = []
    while time.monotonic() < end:
        act = chance.random()
        if act < 0.4:
            write(memory, chance.sample(range(len(memory) // PAGE), 2000))
        elif act < 0.7 and len(own) < 8:
            own.append(block(chance.randrange(1, 8) * 4 * MIB, chance.random() < 0.3))
        elif act < 0.85 and own:
            own.pop().close()
        elif depth < 1:
            pid = os.fork()
            if pid == 0:
                life(memory, chance, depth + 1)
                os._exit(0)
            os.waitpid(pid, 0)
        time.sleep(chance.uniform(0.001, 0.05))
