"""The job of faults.py: threads, loaders, forks and queues, with a fault at each step that a seed draws."""

import ctypes
import faulthandler
import gc
import json
import multiprocessing
import os
import queue
import random
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
import zlib

from faults_signals import CHILD, PACKAGE, PATIENCE, SETTLE, Asynchronous, Late, Signals, Timer

FORKED = 99  # how a forked child ends

# --- what another process does --------------------------------------------------------------------------


def sealed(data):
    return data, zlib.crc32(data)


def fits(message):
    data, checksum = message
    return zlib.crc32(data) == checksum


def echo(asked, answers):
    """Answers with random bytes, as many as it is asked for; raises, or dies, where it is asked for that."""
    while (size := asked.get()) is not None:
        if size == "raise":
            raise ValueError("as asked")
        if isinstance(size, str):
            sys.modules["ullage._native"].fail_at(size, 1)
            size = 5000
        answers.put(sealed(os.urandom(size)))


def nothing():
    pass


class Rows:
    """A dataset of random rows of many sizes, each with its sum; row `bad` raises, at row `dead` the worker dies."""

    def __init__(self, bad=-1, dead=-1):
        self.bad, self.dead = bad, dead

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import torch

        if index == self.bad:
            raise ValueError("a bad row")
        if index == self.dead:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randint(0, 1 << 20, (64 + 37 * index % 5000,), dtype=torch.int64)
        return x, int(x.sum())


# --- the job --------------------------------------------------------------------------------------------


class Job:
    """One program and its events. Every line that it prints is JSON."""

    def __init__(self, method, events, seed, plain):
        self.method, self.events, self.chance, self.plain = method, events, random.Random(seed), plain
        common = sys.modules.get("_ullage_common")
        self.native = None if common is None else common.native
        self.signals = Signals(self.say)
        self.batches, self.steps, self.workers = None, [], None
        if plain:
            self.context = multiprocessing.get_context("fork" if method == "zygote" else method)
        else:
            import ullage
            from ullage import _native

            self.context, self.steps = ullage.context(method), _native.fail_points()

    def say(self, **words):
        os.write(1, json.dumps(words).encode() + b"\n")

    # operations that a signal may fall into, each as short as what it is about

    def due(self):
        if self.native is not None:
            self.native.next_sample(0.0)

    def agent_sleeps(self):
        self.due()
        time.sleep(0)

    def agent_collects(self):
        self.due()
        gc.collect(0)

    def allocates(self):
        gc.set_threshold(1, 1, 1)
        try:
            [{"n": [n]} for n in range(30)]
        finally:
            gc.set_threshold(700, 10, 10)

    def sends_and_gets(self):
        self.asked.put(self.chance.choice((10, 3000, 40_000)))
        self.check(self.answers.get(timeout=PATIENCE / 2))

    def sends_and_gets_collecting(self):
        gc.set_threshold(1, 1, 1)
        try:
            self.sends_and_gets()
        finally:
            gc.set_threshold(700, 10, 10)

    def forks(self):
        pid = os.fork()
        if pid == 0:
            os._exit(FORKED)
        os.waitpid(pid, 0)

    def next_batch(self):
        x, total = next(self.batches)
        if int(x.sum()) != total:
            self.say(wrong="a batch")

    # what they need

    def check(self, message):
        if not fits(message):
            self.say(wrong="a message")

    def worker(self):
        """A process that answers; a new one where the last one is gone."""
        self.asked, self.answers = self.context.Queue(), self.context.Queue()
        one = self.context.Process(target=echo, args=(self.asked, self.answers), daemon=True)
        one.start()
        self.asked.put(1)
        self.check(self.answers.get(timeout=2 * PATIENCE))
        self.workers = one

    def drain(self):
        """Answers that nobody got, because the signal came before."""
        while True:
            try:
                self.check(self.answers.get_nowait())
            except queue.Empty:
                return

    def loader(self, rows, method=None):
        from torch.utils.data import DataLoader

        method = method or ("fork" if self.method == "zygote" else self.method)
        settings = {"num_workers": 1, "multiprocessing_context": method, "timeout": 2 * PATIENCE}
        return iter(DataLoader(rows, batch_size=None, **settings))

    def reap(self):
        """Children whose pid the signal kept from us."""
        with open(f"/proc/self/task/{threading.get_native_id()}/children") as file:
            children = {int(pid) for pid in file.read().split()}
        for pid in children:
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None and found.si_status == FORKED:
                os.waitpid(pid, 0)

    # threads beside

    def beside(self):
        """One thread waits for ever, one sends and gets, both by queues of their own."""
        queues = [self.context.Queue() for _ in range(2)]
        self.hits, self.pacing = 0, threading.Event()

        def waits():
            queues[0].get()

        def sends():
            while True:
                try:
                    # What an exception between the two left on its way; else it would stay there to the end.
                    while not queues[1].empty():
                        self.check(queues[1].get(timeout=PATIENCE))
                    while True:
                        queues[1].put(sealed(os.urandom(300)))
                        self.check(queues[1].get(timeout=PATIENCE))
                        self.pacing.wait(0.001)
                except Asynchronous:
                    self.hits += 1
                    self.hit.set()

        self.hit = threading.Event()
        threads = [threading.Thread(target=target, daemon=True) for target in (waits, sends)]
        for thread in threads:
            thread.start()
        self.sender = threads[1].ident

    def others_inside(self):
        for ident, frame in sys._current_frames().items():
            if ident != threading.get_ident():
                while frame is not None:
                    name = frame.f_code.co_filename
                    if name.startswith(PACKAGE) or "ullage_" in os.path.basename(name):
                        return f"{os.path.basename(name)}:{frame.f_code.co_name}"
                    frame = frame.f_back
        return None

    # events that are no signals: (kind, inside, what is wrong)

    def child(self):
        """In a forked child: what a program may do there. 0 where all is as it was sent."""
        faulthandler.dump_traceback_later(PATIENCE - 5, exit=True)
        self.agent_sleeps()
        own = self.context.Queue() if not self.plain else queue.Queue()
        message = sealed(os.urandom(9000))
        own.put(message)
        fine = own.get(timeout=PATIENCE) == message
        self.agent_collects()
        return 0 if fine else 1

    def forked(self):
        inside = self.others_inside()
        pid = os.fork()
        if pid == 0:
            code = 2
            try:
                code = self.child()
            finally:
                os._exit(code)
        return "fork", inside, self.ended(pid, 0)

    def forked_in_thread(self):
        """Another thread forks while the agent looks for this one."""
        found, going = [], [True]

        def forks():
            inside = self.others_inside()
            pid = os.fork()
            if pid == 0:
                code = 2
                try:
                    code = self.child()
                finally:
                    os._exit(code)
            found.append((inside, self.ended(pid, 0)))
            going[0] = False

        thread = threading.Thread(target=forks)
        thread.start()
        while going[0]:
            self.agent_sleeps()
        thread.join()
        return "fork-in-thread", *found[0]

    def signalled_child(self):
        """A child whose handler raises as soon as it can, while the hooks of a fork still run."""
        parent, delay = os.getpid(), self.chance.uniform(0, 0.0015)
        signals, others = self.signals, self.signals.by_python
        try:
            signals.armed = CHILD
            pid = os.fork()
            if pid == 0:
                while True:
                    time.sleep(0.05)
                    if signals.armed is None:  # it was raised, and nobody got it
                        os._exit(7 if signals.by_python > others else 8)
        except Late:
            if os.getpid() != parent:
                os._exit(7)
            raise
        signals.armed = None
        until = time.perf_counter() + delay
        while time.perf_counter() < until:
            pass
        fd = os.pidfd_open(pid)
        try:
            # CPython forgets what comes before its own hooks have run.
            for _ in range(PATIENCE * 5):
                os.kill(pid, signal.SIGALRM)
                if select.select([fd], [], [], 0.2)[0]:
                    break
        finally:
            os.close(fd)
        return "signal-to-child", None, self.ended(pid, 7)

    def ended(self, pid, wanted):
        """None where a child ended as it should."""
        fd = os.pidfd_open(pid)
        try:
            if not select.select([fd], [], [], PATIENCE)[0]:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return "hangs: a child"
        finally:
            os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return (
            None
            if code == wanted
            else f"lost: in a child ({code})"
            if code == 8
            else f"failed: a child ended with {code}"
        )

    def preexec(self):
        inside = self.others_inside()
        code = subprocess.run(["true"], preexec_fn=os.setsid, check=False).returncode
        return "preexec", inside, None if code == 0 else f"failed: preexec {code}"

    def process(self):
        inside = self.others_inside()
        context = multiprocessing.get_context("fork") if self.chance.random() < 0.9 else self.context
        one = context.Process(target=nothing)
        one.start()
        one.join(PATIENCE)
        code = one.exitcode
        if code is None:
            one.kill()
        return "process", inside, None if code == 0 else f"failed: a process ended with {code}"

    def collected(self):
        """A cycle with a finalizer, which runs once, and in a thread of the program's, whoever allocates meanwhile."""
        ran, threads = [], {thread.ident for thread in threading.enumerate()}

        class Cycle:
            def __del__(self):
                ran.append(threading.get_ident())

        one = Cycle()
        one.itself, watched = one, weakref.ref(one)
        gc.set_threshold(1, 1, 1)
        try:
            del one
            self.agent_sleeps()
        finally:
            gc.set_threshold(700, 10, 10)
        self.due()
        deadline = time.monotonic() + PATIENCE
        while not ran and time.monotonic() < deadline:  # another thread may be at it
            gc.collect()
        fine = watched() is None and len(ran) == 1 and ran[0] in threads
        return "collection", None, None if fine else f"failed: a finalizer ran {len(ran)} times, in {ran} of {threads}"

    def in_thread(self):
        """An exception that leaves a thread: told to threading.excepthook once."""
        told, before = [], threading.excepthook
        threading.excepthook = lambda args: told.append(args.exc_value)
        error = ValueError("in a thread")

        def raises():
            raise error

        thread = threading.Thread(target=raises)
        thread.start()
        thread.join()
        threading.excepthook = before
        return "exception-in-thread", None, None if told == [error] else f"lost: in a thread {told}"

    def into_thread(self):
        """An exception raised from outside in the thread that sends and gets."""
        before, inside = self.hits, None
        frame = sys._current_frames().get(self.sender)
        while frame is not None and inside is None:
            name = frame.f_code.co_filename
            inside = os.path.basename(name) if name.startswith(PACKAGE) else None
            frame = frame.f_back
        self.hit.clear()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.sender), ctypes.py_object(Asynchronous))
        told = self.hit.wait(PATIENCE)
        fine = told and self.hits == before + 1
        return "exception-into-thread", inside, None if fine else f"lost: {self.hits - before} arrived in a thread"

    def in_worker(self):
        """A worker that raises: the trainer is told, and goes on with another."""
        self.drain()
        self.asked.put("raise")
        return self.worker_gone("exception-in-worker", None)

    def killed(self):
        """A worker that dies at a step of the arena's protocol, or at any moment."""
        step = self.chance.choice(
            ["Sent", "Filled", "Written", "Found", "Allocated", "Received", "Taken", "Ended", None]
        )
        if step is None or not self.steps:
            step = None
            self.asked.put(100_000)
            os.kill(self.workers.pid, signal.SIGKILL)
        else:
            self.asked.put(step)
            for _ in range(3):
                self.asked.put(5000)
        return self.worker_gone("kill", step)

    def worker_gone(self, kind, inside):
        problem = None
        try:
            while True:
                self.check(self.answers.get(timeout=PATIENCE / 2))
        except queue.Empty as error:  # WorkerDied is one
            if type(error) is queue.Empty and not self.plain:
                # A step that it did not come to: it waits for more to do.
                if self.workers.exitcode is None and inside is not None:
                    self.workers.kill()
                else:
                    problem = "failed: nobody told of a worker's death"
        self.workers.join(PATIENCE)
        if self.workers.exitcode is None:
            problem = "hangs: a worker"
        self.workers = None
        return kind, inside, problem

    def loads(self):
        """A loader whose worker raises, or dies, and batches until then."""
        how = self.chance.choice(["bad", "dead"])
        at = self.chance.randrange(1, 20)
        number, told = 0, None
        try:
            for x, total in self.loader(Rows(**{how: at})):
                number += 1
                if int(x.sum()) != total:
                    self.say(wrong="a batch")
        except ValueError as error:
            told = ("bad", str(error))
        except RuntimeError as error:
            told = ("dead", str(error))
        gc.collect()
        fine = told is not None and told[0] == how and (how == "dead" or number == at)
        return f"loader-{how}", "loader", None if fine else f"failed: {how} at {at}, told {told} after {number}"

    def run(self):
        """All events, in the order that the seed gives."""
        light = [self.agent_sleeps, self.agent_collects, self.allocates, self.forks]
        if not self.plain:
            light += [self.sends_and_gets, self.sends_and_gets, self.sends_and_gets_collecting]
        cheap = [self.forked, self.forked_in_thread, self.signalled_child, self.preexec, self.process, self.collected]
        cheap += [self.in_thread] if self.plain else [self.in_thread, self.into_thread]
        slow = self.method in ("spawn", "forkserver")
        self.worker()
        if not self.plain:
            self.beside()
        numbers = list(Signals.KINDS)
        for event in range(self.events):
            draw = self.chance.random()
            if draw < 0.78:
                operation, number = self.chance.choice(light), self.chance.choice(numbers)
                name = signal.Signals(number).name
                how, inside = self.signals.turn(event, number, operation, self.chance)
                problem = f"lost: {name} in {operation.__name__}" if how == "lost" else None
                self.say(event=name, inside=inside, problem=problem, by_python=how == "by_python")
                if operation is self.forks:
                    self.reap()
                elif operation.__name__.startswith("sends"):
                    self.drain()
                continue
            if draw < 0.985:
                kind, inside, problem = self.chance.choice(cheap)()
            elif draw < (0.986 if slow else 0.988):
                kind, inside, problem = self.batches_hit(event, numbers)
            elif draw < (0.987 if slow else 0.99):
                kind, inside, problem = self.loads()
            elif draw < (0.99 if slow else 1.0) and not self.plain:
                kind, inside, problem = self.chance.choice([self.killed, self.killed, self.in_worker])()
                self.worker()
            else:
                kind, inside, problem = self.collected()
            self.say(event=kind, inside=inside, problem=problem)
        self.end()

    def batches_hit(self, event, numbers):
        """A signal while a batch is waited for; the iterator is given up: torch waits for ever after it."""
        self.batches = self.loader(Rows())
        self.next_batch()
        number = self.chance.choice(numbers)
        self.signals.took["next_batch"] = 0.0005
        how, inside = self.signals.turn(event, number, self.next_batch, self.chance)
        self.batches = None
        gc.collect()
        return f"{signal.Signals(number).name}-in-loader", inside, "lost: in a loader" if how == "lost" else None

    def end(self):
        """Nothing is held any more."""
        self.asked.put(None)
        self.workers.join(PATIENCE)
        holdings = []
        if not self.plain:
            from ullage import _context

            self.drain()
            gc.collect()
            # What the two threads have in hand stays; what the killed held comes back when memory is asked for, or here.
            deadline = time.monotonic() + SETTLE
            while time.monotonic() < deadline:
                _context.arena().trim()
                holdings = _context.arena().report()["holdings"]
                if sum(held for _, held, _, _ in holdings) <= 2:
                    holdings = []
                    break
                gc.collect()
                time.sleep(0.05)
        # As they are at last: who holds (0: on its way), how many blocks, bytes, seconds.
        self.say(done=True, holdings=[list(one) for one in holdings], pid=os.getpid())
        sys.stdout.flush()


def job(method, events, seed, plain, dies):
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    # An exception in a hook of logging's, which CPython can raise nowhere, leaves its lock taken for good.
    hooks, os.register_at_fork = os.register_at_fork, lambda **_: None
    import logging  # noqa: F401

    os.register_at_fork = hooks
    one = Job(method, events, seed, plain)
    if dies:
        # The trainer is killed at a random moment, with workers that start, wait and answer.
        timer = Timer(signal.SIGKILL)
        one.worker()
        timer.after(one.chance.uniform(0.0, 0.4))
        while True:
            one.sends_and_gets()
            if one.chance.random() < 0.02:
                one.context.Process(target=nothing, daemon=True).start()
    one.run()
