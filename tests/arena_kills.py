#!/usr/bin/env python3
"""SIGKILL at random moments against a loader whose batches travel in the arena.

Cells: who is killed {worker, trainer, forkserver or zygote, tree} x start method. After each kill: every batch that arrived had
its checksum, the trainer was told of a worker's death (time until then is printed) and went on, nothing new has a
name in /dev/shm, and two seconds after the trainer's end no process of the job is left.

    python tests/arena_kills.py [--times 20] [--methods fork,spawn,forkserver,zygote] [--victims worker,...]
    python tests/arena_kills.py --points [--times 3] [--methods fork]

With --points a worker, or the trainer, kills itself at each step of the arena's protocol in turn, between two writes
that others can see (ullage._native.fail_points), and the same is asked of those who are left.
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

import watched

if "--trainer" in sys.argv:  # in the trainer and its workers; the one who kills needs no torch
    import torch

    import ullage
    from ullage import _native

MARK = "ULLAGE_TEST_KILLS"
AT_MOST_S = 300  # only a failure takes so long
ENDS = []  # seconds from a trainer's end to that of all its processes
# Who forks workers: by the words of its command, which its children have as well.
SERVERS = {"forkserver": "forkserver import main", "zygote": "_zygote.main import main"}


class Checked:
    """A dataset of random rows of many sizes, each with its sum."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        x = torch.randint(0, 1 << 20, (64 + index % 5000,), dtype=torch.int64)
        return x, int(x.sum())


class Armed:
    """For worker_init_fn: the first worker of the first loader dies at a step; no other process inherits that."""

    def __init__(self, point, times):
        self.point, self.times = point, times

    def __call__(self, number):
        _native.fail_at(self.point, self.times if number == 0 else 0)


def trainer(method, point, who, times):
    """Trains for ever; says on standard output what happens."""
    torch.set_num_threads(1)
    armed = None
    if point:
        armed = Armed(point, times if who == "worker" else 0)
        _native.fail_at(point, times if who == "trainer" else 0)

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
            worker_init_fn=armed,
        )
        armed = Armed(point, 0) if point else None
        try:
            batches = iter(loader)
            first = next(batches)
            assert int(first[0].sum()) == first[1]
            say("workers", *[worker.pid for worker in batches._workers])
            for number, (x, checksum) in enumerate(batches):
                if int(x.sum()) != checksum:
                    say("CORRUPT", number)
                if number == 100:
                    say("going")
                if number % 7 == 0:
                    kept.append((x, checksum))
                    if len(kept) > 20:
                        old, checksum = kept.pop(random.randrange(20))
                        if int(old.sum()) != checksum:
                            say("CORRUPT", "kept", number)
        except RuntimeError as error:
            say("caught", repr(time.monotonic()), type(error.__cause__).__name__)
            batches = None  # torch tells of a worker at any time, also before there are any
        except (EOFError, OSError, ConnectionError) as error:
            say("caught", repr(time.monotonic()), type(error).__name__)


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Job:
    def __init__(self, method, *armed):
        self.token = f"{os.getpid()}-{random.getrandbits(32):x}"
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--trainer", method, *map(str, armed)],
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
        """pids that live on after the trainer's end, and who they are."""
        self.process.kill()
        self.process.wait()
        ended = time.monotonic()
        deadline = ended + AT_MOST_S
        while watched.marked(MARK, self.token):
            if time.monotonic() > deadline:
                left = [(pid, command_of(pid)) for pid in watched.marked(MARK, self.token)]
                for pid, _ in left:
                    os.kill(pid, signal.SIGKILL)
                return left
            time.sleep(0.02)
        ENDS.append(time.monotonic() - ended)
        return []


def shm_names():
    return set(os.listdir("/dev/shm"))


def leaks(before):
    """What other programs of this machine make goes within moments; what is left stays."""
    if watched.wait_for(lambda: not watched.unused_names(before), 30):
        return []
    return [f"names in /dev/shm: {sorted(watched.unused_names(before))}"]


def cell(victim, method, times, chance):
    """Problems of one cell, and the seconds until a trainer knew of its worker's death."""
    problems, told, job, done = [], [], None, 0
    names = shm_names()
    while done < times:
        if job is None:
            job = Job(method)
            workers = job.until("workers", AT_MOST_S)
            if workers is None or workers[0] == "CORRUPT":
                problems.append(f"no workers: {workers}")
                job.left_behind()
                return problems, told
        time.sleep(chance.random() * 0.3)
        done += 1
        if victim == "worker":
            at = time.monotonic()
            os.kill(int(chance.choice(workers[1:])), signal.SIGKILL)
            caught = job.until("caught", AT_MOST_S)
            if caught is None or caught[0] == "CORRUPT":
                problems.append(f"after a worker's death: {caught}")
                job.left_behind()
                job = None
                continue
            told.append(float(caught[1]) - at)
            workers = job.until("workers", AT_MOST_S)
            if workers is None or workers[0] == "CORRUPT":
                problems.append(f"the trainer did not go on: {workers}")
                job.left_behind()
                job = None
        elif victim in SERVERS:
            servers = [pid for pid in watched.marked(MARK, job.token) if SERVERS[victim] in command_of(pid)]
            servers = [pid for pid in servers if str(pid) not in workers[1:]]
            if not servers:
                problems.append(f"no {victim} was found")
            for pid in servers:
                os.kill(pid, signal.SIGKILL)
            if (wrong := job.until("caught", 0.3)) is not None and wrong[0] == "CORRUPT":
                problems.append("a corrupt batch")
            left = job.left_behind()
            problems += [f"left behind: {left}"] if left else []
            job = None
        else:
            pids = watched.marked(MARK, job.token) if victim == "tree" else [job.process.pid]
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
    return problems + leaks(names), told


def point_cell(point, who, method, times, chance):
    """Problems where `who` dies at this step, each time at another moment."""
    problems, names = [], shm_names()
    for turn in range(times):
        # Regions and memory are taken when a process begins to allocate, and seldom afterwards; never again by a
        # trainer, which allocates for indices only.
        most = {"Region": 1, "Committed": 3 if who == "worker" else 1}.get(point, 200)
        moment = 1 if turn == 0 else chance.randint(1, most)
        job = Job(method, point, who, moment)
        if who == "worker":
            steps = [(word, job.until(word, AT_MOST_S)) for word in ("caught", "workers", "going")]
            problems += [
                f"{point}, time {moment}: no {word!r}: {line}" for word, line in steps if not line or line[0] != word
            ]
            dead = None
        else:
            while (line := job.line(AT_MOST_S)) is not None:
                if line[0] == "CORRUPT":
                    problems.append(f"{point}, time {moment}: {line}")
            dead = job.process.poll()
            if dead is None:
                try:
                    dead = job.process.wait(1)
                except subprocess.TimeoutExpired:
                    pass
            if dead != -signal.SIGKILL:
                problems.append(f"{point}, time {moment}: the trainer did not come to it ({dead})")
        left = job.left_behind()
        problems += [f"{point}, time {moment}: left behind: {left}"] if left else []
    return problems + leaks(names)


def points(args, chance):
    """Deaths at every step; how many cells were well, and how many not."""
    asked = [sys.executable, "-c", "from ullage import _native; print(*_native.fail_points())"]
    every = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    passed = failed = 0
    for method in args.methods.split(","):
        for who in ("worker", "trainer"):
            start, bad = time.monotonic(), []
            for point in every:
                problems = point_cell(point, who, method, args.times, chance)
                passed, failed = passed + (not problems), failed + bool(problems)
                bad += problems
            word = "ok" if not bad else f"{len(bad)} PROBLEMS"
            print(
                f"{method:11} {who:8} dies at each of {len(every)} steps, {args.times} times  {word}  "
                f"[{time.monotonic() - start:.0f} s]",
                flush=True,
            )
            for problem in bad:
                print(f"    {problem}", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--methods", default="fork,spawn,forkserver,zygote")
    parser.add_argument("--victims", default="worker,trainer,forkserver,zygote,tree")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", action="store_true", help="deaths at the steps of the protocol")
    parser.add_argument("--trainer", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trainer:
        method, point, who, times = (*args.trainer, "", "", "0")[:4]
        trainer(method, point, who, int(times))
    chance = random.Random(args.seed)
    passed = failed = 0
    if args.points:
        passed, failed = points(args, chance)
        print(f"all of a job ended {max(ENDS):.3f} s after its trainer at the latest")
        print(f"{passed} passed, {failed} failed")
        return 0 if failed == 0 else 1
    for method in args.methods.split(","):
        for victim in args.victims.split(","):
            if victim in SERVERS and method != victim:
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
    print(f"all of a job ended {max(ENDS):.3f} s after its trainer at the latest")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
