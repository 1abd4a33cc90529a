#!/usr/bin/env python3
"""Forks of a trainer at random moments, while other threads of it wait for batches: does every child come through?

Two threads wait for ever for a batch, two train without end, each with a loader of its own and the start method
under test. Meanwhile the main thread forks: bare, as multiprocessing does, with a subprocess's preexec_fn, and as
a fork-started loader. Each child uses the arena, a new queue and the queue that its parent's threads wait in. A child
that does not end is a hang: it is counted and killed, and after the third the rest is left out.

    python tests/fork_threads.py [--forks 2000] [--seed 1] [--methods fork,spawn,forkserver,zygote]
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time

METHODS = "fork,spawn,forkserver,zygote"
WAITING = 4
MOST_HANGS = 3
# Seconds without which a child is called hanging: a failure, never waited for otherwise.
PATIENCE = 60
TRAINER = "--trainer" in sys.argv

if TRAINER or multiprocessing.parent_process() is not None:  # in the trainer and its workers only
    import torch
    from torch.utils.data import DataLoader

    import ullage
    from ullage import _context, _native


class Never:
    """A dataset of which nothing ever arrives."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        signal.pause()


class Checked:
    """Random rows of many sizes, each with its sum."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        x = torch.randint(0, 1 << 20, (64 + 37 * index % 5000,), dtype=torch.int64)
        return x, int(x.sum())


def wrong(batch):
    x, checksum = batch
    return int(x.sum()) != checksum


class Threads:
    """What goes on beside the forks."""

    def __init__(self, context, seed):
        self.context, self.chance = context, random.Random(seed)
        self.waiting, self.going, self.wrong = threading.Semaphore(0), threading.Semaphore(0), 0
        self.iterators = []
        for number in range(WAITING):
            target = self.wait if number % 2 else self.train
            threading.Thread(target=target, daemon=True).start()
        for number in range(WAITING):
            (self.waiting if number % 2 else self.going).acquire()

    def loader(self, dataset):
        return iter(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=self.context))

    def wait(self):
        batches = self.loader(Never())
        self.iterators.append(batches)
        self.waiting.release()
        next(batches)

    def train(self):
        while True:
            kept = []
            for batch in self.loader(Checked(self.chance.randrange(500, 5000))):
                self.wrong += wrong(batch)
                kept.append(batch)
                if len(kept) > 20:
                    del kept[self.chance.randrange(20)]
                self.going.release()


def use(iterator):
    """In a child: what a program may do there. Ends with 1 where something is not as it was sent."""
    block = _context.arena().alloc(5000)
    queue = _context.Queue()
    sent = torch.arange(3000)
    queue.put(sent)
    fine = torch.equal(queue.get(timeout=PATIENCE), sent) and len(block) == 5000
    iterator._worker_result_queue.empty()
    del block, queue
    _context.arena().trim()
    return 0 if fine else 1


def in_process(iterator):
    sys.exit(use(iterator))


def ended(pid):
    """Exit status of a child; None where it hangs."""
    fd = _native.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], PATIENCE)[0]:
            return None
    finally:
        os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def bare(iterator):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(use(iterator))
        finally:
            os._exit(2)
    code = ended(pid)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return code


def process(iterator):
    child = multiprocessing.get_context("fork").Process(target=in_process, args=(iterator,))
    child.start()
    child.join(PATIENCE)
    code = child.exitcode
    if code is None:
        child.kill()
        child.join()
    return code


def children():
    with open(f"/proc/self/task/{threading.get_native_id()}/children") as file:
        return {int(pid) for pid in file.read().split()}


def preexec(iterator):
    """In a thread of its own: the parent waits for what the child does before exec."""
    found = []

    def run():
        before = children()
        kill = threading.Timer(PATIENCE, lambda: [os.kill(pid, signal.SIGKILL) for pid in of_thread() - before])
        native = threading.get_native_id()

        def of_thread():
            with open(f"/proc/self/task/{native}/children") as file:
                return {int(pid) for pid in file.read().split()}

        kill.start()
        try:
            found.append(subprocess.run(["true"], preexec_fn=os.setsid, check=False).returncode)
        except subprocess.SubprocessError:
            found.append(None)
        kill.cancel()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return None if found[0] == -signal.SIGKILL else found[0]


def loader(iterator):
    """As a validation loop does beside a pin_memory thread."""
    batches = DataLoader(
        Checked(4),
        batch_size=None,
        num_workers=1,
        multiprocessing_context=ullage.context("fork"),
        timeout=PATIENCE,
    )
    try:
        return int(any(wrong(batch) for batch in batches))
    except RuntimeError as error:
        if "timed out" not in str(error):
            raise
        return None


def trainer(method, forks, seed):
    torch.set_num_threads(1)
    threads = Threads(ullage.context(method), seed)
    chance = random.Random(seed)
    counts, hangs = {}, 0
    for _ in range(forks):
        (kind,) = chance.choices([bare, process, preexec, loader], [70, 15, 12, 3])
        if chance.random() < 0.2:  # at another moment of the threads that train
            threads.going.acquire()
        code = kind(threads.iterators[0])
        counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        hangs += code is None
        print("hung" if code is None else "failed" if code else "forked", flush=True)
        if hangs == MOST_HANGS:
            break
    words = " ".join(f"{name}={number}" for name, number in sorted(counts.items()))
    print(f"done {threads.wrong} {words}", flush=True)
    os._exit(0)


def run(method, forks, seed):
    """Forks, hangs, other failures, wrong batches and the kinds of one start method."""
    command = [sys.executable, "-W", "ignore", __file__, "--trainer", method, str(forks), str(seed)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    counts, rest = dict.fromkeys(("forked", "hung", "failed"), 0), b""

    def result(hung, failed, wrong_batches, words):
        return sum(counts.values()) + hung, counts["hung"] + hung, counts["failed"] + failed, wrong_batches, words

    try:
        while True:
            # The trainer itself may hang; to start it takes longer than any fork.
            if not select.select([job.stdout], [], [], 4 * PATIENCE)[0]:
                return result(1, 0, 0, "the trainer itself")
            more = os.read(job.stdout.fileno(), 65536)
            if not more:
                return result(0, 1, 0, f"the trainer ended with {job.wait()}")
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                word, *rest_of_line = line.decode().split(maxsplit=2)
                if word == "done":
                    return result(0, 0, int(rest_of_line[0]), rest_of_line[1])
                counts[word] += 1
    finally:
        job.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forks", type=int, default=2000, help="of each start method")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--trainer", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trainer:
        trainer(args.trainer[0], int(args.trainer[1]), int(args.trainer[2]))
    bad = 0
    for method in args.methods.split(","):
        start = time.monotonic()
        forks, hangs, failed, wrong_batches, kinds = run(method, args.forks, args.seed)
        bad += hangs + failed + wrong_batches + (forks < args.forks)
        print(
            f"{method:11} {forks:5} forks beside {WAITING} waiting threads: {hangs} hangs, {failed} failed, "
            f"{wrong_batches} wrong batches ({kinds}) [{time.monotonic() - start:.0f} s]",
            flush=True,
        )
    return 0 if bad == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
