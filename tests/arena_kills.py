#!/usr/bin/env python3
"""SIGKILL at random moments against a loader whose batches travel in the arena.

Cells: who is killed {worker, trainer, forkserver, tree} x start method. After each kill: every batch that arrived had
its checksum, the trainer was told of a worker's death (time until then is printed) and went on, nothing new has a
name in /dev/shm, and two seconds after the trainer's end no process of the job is left.

    python tests/arena_kills.py [--times 20] [--methods fork,spawn,forkserver] [--victims worker,...]
"""

import argparse
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import time

if "--trainer" in sys.argv:  # in the trainer and its workers; the one who kills needs no torch
    import torch

    import ullage

MARK = "ULLAGE_TEST_KILLS"
GONE_WITHIN = 2.0


class Checked:
    """A dataset of random rows of many sizes, each with its sum."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        x = torch.randint(0, 1 << 20, (64 + index % 5000,), dtype=torch.int64)
        return x, int(x.sum())


def trainer(method):
    """Trains for ever; says on standard output what happens."""
    torch.set_num_threads(1)

    def say(*words):
        os.write(1, (" ".join(map(str, words)) + "\n").encode())

    context = ullage.context(method)
    kept = []
    while True:
        loader = torch.utils.data.DataLoader(
            Checked(),
            batch_size=None,
            sampler=torch.utils.data.RandomSampler(range(1 << 20)),
            num_workers=2,
            multiprocessing_context=context,
        )
        try:
            batches = iter(loader)
            first = next(batches)
            assert int(first[0].sum()) == first[1]
            say("workers", *[worker.pid for worker in batches._workers])
            for number, (x, checksum) in enumerate(batches):
                if int(x.sum()) != checksum:
                    say("CORRUPT", number)
                if number % 7 == 0:
                    kept.append((x, checksum))
                    if len(kept) > 20:
                        old, checksum = kept.pop(random.randrange(20))
                        if int(old.sum()) != checksum:
                            say("CORRUPT", "kept", number)
        except RuntimeError as error:
            say("caught", repr(time.monotonic()), type(error.__cause__).__name__)
            del batches
        except (EOFError, OSError, ConnectionError) as error:
            say("caught", repr(time.monotonic()), type(error).__name__)


def marked(token):
    """pids of the job that are no zombies."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"{MARK}={token}".encode() not in file.read():
                    continue
            with open(f"/proc/{name}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(name))
        except OSError:
            continue
    return found


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Job:
    def __init__(self, method):
        self.token = f"{os.getpid()}-{random.getrandbits(32):x}"
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--trainer", method],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, MARK: self.token},
            start_new_session=True,
        )
        self.rest = b""

    def line(self, within):
        """The next line, split; none where the time is over or the trainer is gone."""
        deadline = time.monotonic() + within
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode().split()

    def until(self, word, within):
        deadline = time.monotonic() + within
        while True:
            line = self.line(max(0.0, deadline - time.monotonic()))
            if line is None or line[0] in (word, "CORRUPT"):
                return line

    def left_behind(self):
        """pids that are alive two seconds after the trainer's end, and who they are."""
        self.process.kill()
        self.process.wait()
        deadline = time.monotonic() + GONE_WITHIN
        while marked(self.token):
            if time.monotonic() > deadline:
                left = [(pid, command_of(pid)) for pid in marked(self.token)]
                for pid, _ in left:
                    os.kill(pid, signal.SIGKILL)
                return left
            time.sleep(0.02)
        return []


def shm_names():
    return set(os.listdir("/dev/shm"))


def cell(victim, method, times, chance):
    """Problems of one cell, and the seconds until a trainer knew of its worker's death."""
    problems, told, job, done = [], [], None, 0
    names = shm_names()
    while done < times:
        if job is None:
            job = Job(method)
            workers = job.until("workers", 120)
            if workers is None or workers[0] == "CORRUPT":
                problems.append(f"no workers: {workers}")
                job.left_behind()
                return problems, told
        time.sleep(chance.random() * 0.3)
        done += 1
        if victim == "worker":
            at = time.monotonic()
            os.kill(int(chance.choice(workers[1:])), signal.SIGKILL)
            caught = job.until("caught", 20)
            if caught is None or caught[0] == "CORRUPT":
                problems.append(f"after a worker's death: {caught}")
                job.left_behind()
                job = None
                continue
            told.append(float(caught[1]) - at)
            workers = job.until("workers", 120)
            if workers is None or workers[0] == "CORRUPT":
                problems.append(f"the trainer did not go on: {workers}")
                job.left_behind()
                job = None
        elif victim == "forkserver":
            servers = [pid for pid in marked(job.token) if "forkserver import main" in command_of(pid)]
            servers = [pid for pid in servers if str(pid) not in workers[1:]]
            if not servers:
                problems.append("no fork server was found")
            for pid in servers:
                os.kill(pid, signal.SIGKILL)
            if (wrong := job.until("caught", 0.3)) is not None and wrong[0] == "CORRUPT":
                problems.append("a corrupt batch")
            left = job.left_behind()
            problems += [f"left behind: {left}"] if left else []
            job = None
        else:
            pids = marked(job.token) if victim == "tree" else [job.process.pid]
            chance.shuffle(pids)
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            left = job.left_behind()
            problems += [f"left behind: {left}"] if left else []
            job = None
    if job is not None:
        left = job.left_behind()
        problems += [f"left behind at the end: {left}"] if left else []
    new = shm_names() - names
    problems += [f"names in /dev/shm: {sorted(new)}"] if new else []
    return problems, told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--methods", default="fork,spawn,forkserver")
    parser.add_argument("--victims", default="worker,trainer,forkserver,tree")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trainer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trainer:
        trainer(args.trainer)
    chance = random.Random(args.seed)
    passed = failed = 0
    for method in args.methods.split(","):
        for victim in args.victims.split(","):
            if victim == "forkserver" and method != "forkserver":
                continue
            start = time.monotonic()
            problems, told = cell(victim, method, args.times, chance)
            figure = ""
            if told:
                figure = f"  told after {statistics.median(told):.3f} s (largest {max(told):.3f})"
            word = "ok" if not problems else f"{len(problems)} PROBLEMS"
            print(
                f"{method:11} {victim:11} {args.times:4} kills  {word}{figure}  [{time.monotonic() - start:.0f} s]",
                flush=True,
            )
            for problem in problems[:5]:
                print(f"    {problem}", flush=True)
            passed, failed = (passed + 1, failed) if not problems else (passed, failed + 1)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
