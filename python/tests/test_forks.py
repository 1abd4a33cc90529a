"""A fork may come at any moment, whatever other threads do: see docs/decisions/0013-locks-and-forks.md."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import ullage  # noqa: E402
from ullage import _native  # noqa: E402
from ullage._context import Queue  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

# Seconds after which a process that should have ended hangs.
PATIENCE = 60


def status(pid):
    """Exit status of a child, killed where it hangs."""
    fd = _native.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], PATIENCE)[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def forked(function):
    """Exit status of a child that calls the function: 0 where it returned true."""
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = 0 if function() else 1
        finally:
            os._exit(code)
    return status(pid)


def until_it_waits(thread):
    """Until a thread is in poll(2) or ppoll(2)."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            if file.read().split()[0] in ("7", "271"):
                return
        time.sleep(0.001)
    raise AssertionError("it does not wait")


def test_a_fork_beside_a_thread_that_waits_in_a_queue_comes_through():
    one, got = Queue(), []
    thread = threading.Thread(target=lambda: got.append(one.get()))
    thread.start()
    until_it_waits(thread)

    def child():
        own = Queue()
        own.put(torch.ones(3000))
        one.put("from the child")
        return own.get(timeout=PATIENCE).sum() == 3000

    try:
        assert forked(child) == 0
    finally:
        one.put("from the parent")
        thread.join(PATIENCE)
    assert got in (["from the child"], ["from the parent"])


def test_a_child_sends_its_own_messages_and_not_what_its_parents_pipe_had_no_room_for():
    one = Queue()
    for number in range(20_000):  # more than a pipe holds: a thread writes the rest
        one.put(number)
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            one.put("child")
            one.join_thread()
            code = 0
        finally:
            os._exit(code)
    got = [one.get(timeout=PATIENCE) for _ in range(20_001)]
    assert status(pid) == 0
    assert [number for number in got if number != "child"] == list(range(20_000))
    assert got.count("child") == 1 and one.empty()


FIRST_USE = """
import builtins, os, sys, threading
import torch, ullage
from ullage import _context, _native, _pickling
_pickling.load_torch()
arena, batch = _context.arena(), [torch.ones(3), torch.ones(3)]
reached, leave = threading.Event(), threading.Event()
original = builtins.__import__

def slow(name, *rest):
    if name == "torch" and threading.current_thread() is thread:
        reached.set()
        leave.wait()
    return original(name, *rest)

thread = threading.Thread(target=_native.stack, args=(arena, batch))
builtins.__import__ = slow
thread.start()
reached.wait()
pid = os.fork()
if pid == 0:
    os._exit(0 if _native.stack(arena, batch).shape == (2, 3) else 1)
print(pid, flush=True)
sys.stdin.read()
leave.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_fork_while_another_thread_uses_something_for_the_first_time_comes_through():
    job = subprocess.Popen([sys.executable, "-c", FIRST_USE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child = int(job.stdout.readline())
        fd = _native.pidfd_open(child)
        ended = select.select([fd], [], [], PATIENCE)[0]
        os.close(fd)
        if not ended:
            os.kill(child, signal.SIGKILL)
        assert job.communicate("", PATIENCE)[0].strip() == "0"
    finally:
        job.kill()
        job.wait()


def test_a_child_that_is_forked_while_ullage_learns_of_torch_has_all_of_it(script):
    program = script(
        textwrap.dedent(
            """
            import sys, threading, torch, ullage
            from ullage import _context, _pickling
            # As another thread's import that has come half way.
            reached, leave = threading.Event(), threading.Event()
            use = _context._native.use_torch
            def slow(*args):
                reached.set()
                leave.wait()
                return use(*args)
            _context._native.use_torch = slow
            load = _pickling.load_torch
            thread = threading.Thread(target=load)
            thread.start()
            reached.wait()
            def waits_for_it():
                leave.set()
                load()
            _pickling.load_torch = waits_for_it
            context = ullage.context("fork")
            answers = context.Queue()
            child = context.Process(target=lambda: answers.put(torch.ones(3)))
            child.start()
            leave.set()
            child.join()
            print(child.exitcode, None if child.exitcode else answers.get(timeout=60).tolist())
            """
        )
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.stdout.strip() == "0 [1.0, 1.0, 1.0]", done.stderr


def test_two_loaders_in_threads_and_a_third_in_the_main_thread():
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 50

        def __getitem__(self, index):
            return torch.full((2000,), float(index))

    def sums():
        loader = torch.utils.data.DataLoader(Rows(), num_workers=1, multiprocessing_context=ullage.context("fork"))
        return [float(batch.sum()) for batch in loader]

    got = []
    threads = [threading.Thread(target=lambda: got.append(sums())) for _ in range(2)]
    for thread in threads:
        thread.start()
    got.append(sums())
    for thread in threads:
        thread.join(PATIENCE)
    assert got == [[2000.0 * index for index in range(50)]] * 3


def ends(pid):
    """True once a process that is no child of ours has ended."""
    try:
        fd = _native.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE)[0])
    finally:
        os.close(fd)


# A worker comes to a place where it waits for ever, says so, and its trainer is killed.
STARTING = """
import multiprocessing, os, signal, sys

def wait_for_ever(*_):
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        signal.pause()

class Waits:
    def __reduce__(self):
        return wait_for_ever, ()

def in_worker():
    return multiprocessing.parent_process() is not None

method, where = sys.argv[1:]
if __name__ == "__mp_main__" and where == "main":
    wait_for_ever()
if __name__ == "__main__":
    import multiprocessing.util
    import ullage
    multiprocessing.set_forkserver_preload(["os"])  # each worker imports the main module itself
    if where == "hooks":
        multiprocessing.util.register_after_fork(ullage, wait_for_ever)
    context = ullage.context(method)
    arguments = (Waits(),) if where == "arguments" else ()
    context.Process(target=print, args=arguments).start()
    os.write(1, b"started\\n")
    while True:
        signal.pause()
"""


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("fork", "hooks"),
        ("spawn", "main"),
        ("spawn", "arguments"),
        ("forkserver", "main"),
        ("forkserver", "arguments"),
    ],
)
def test_a_worker_that_has_just_begun_ends_with_its_trainer(script, method, where):
    program = script(textwrap.dedent(STARTING))
    trainer = subprocess.Popen([sys.executable, program, method, where], stdout=subprocess.PIPE, text=True)
    try:
        said = {trainer.stdout.readline().strip(), trainer.stdout.readline().strip()}
        assert "started" in said
        (worker,) = map(int, said - {"started"})
    finally:
        trainer.kill()
        trainer.wait()
        trainer.stdout.close()
    ended = ends(worker)
    if not ended:
        os.kill(worker, signal.SIGKILL)
    assert ended


# Its worker is killed where it imports the main module: long before it reads its arguments.
KILLED = """
import multiprocessing, os, signal, sys
if __name__ == "__mp_main__":
    os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    import ullage
    multiprocessing.set_forkserver_preload(["os"])
    context = ullage.context(sys.argv[1])
    queue = context.Queue()
    many = [str(number) for number in range(100_000)]
    process = context.Process(target=print, args=(queue, many))
    process.note = many  # and with its state
    process.start()
    try:
        queue.get()
    except ullage.errors.WorkerDied as died:
        print(died.exitcode, died.pid == process.pid)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_that_is_killed_before_it_reads_what_it_is_to_do_is_told_as_any_other(script, method):
    program = script(textwrap.dedent(KILLED))
    done = subprocess.run([sys.executable, program, method], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == ["-9", "True"], done.stderr


def test_a_process_that_is_killed_before_it_reads_what_it_is_to_do_ends_as_killed(script):
    text = KILLED[: KILLED.index("    context =")]
    text += textwrap.indent(
        textwrap.dedent(
            """
            os.environ["ULLAGE_DISABLE"] = "1"  # unwatched: what is asked is the same
            process = ullage.Process(target=print, args=([str(number) for number in range(100_000)],))
            process.start()
            process.join()
            print(process.exitcode)
            """
        ),
        "    ",
    )
    program = script(text)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == ["-9"], done.stderr
