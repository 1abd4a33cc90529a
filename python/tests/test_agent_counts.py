"""What the agent counts at the moment of a failure, against what is known of that moment."""

import json
import os
import subprocess
import sys

import pytest

from receiver import watched


def only(receiver, **wanted):
    found = [m for m in receiver.of("exception") if all(m.get(k) == v for k, v in wanted.items())]
    assert len(found) == 1, receiver.messages
    return found[0]


def test_descriptors_at_the_limit(python, script):
    program = script(
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))\nkept = []\n"
        "while True:\n    kept.append(os.open('/dev/null', os.O_RDONLY))"
    )
    done, receiver = watched([python, program], preexec_fn=lambda: __import__("resource").setrlimit(7, (64, 512)))
    said = only(receiver, left="main", type_name="OSError")
    assert said["errno"] == 24 and b"Too many open files" in done.stderr
    counts = said["counts"]
    assert (counts["fds"], counts["nofile"], counts["nofile_hard"]) == (64, 64, 512)
    assert (counts["path"], counts["fds_torch"]) == ("/dev/null", 0)
    assert counts["mappings"] > 10 and counts["max_map_count"] > 0
    assert counts["fd_places"][0][0] == "/dev/" and counts["fd_places"][0][1] > 55


# The stack of a thread that has ended serves the next one, which then starts although nothing can be mapped.
A_STACK = "import threading\none = threading.Thread(target=int)\none.start()\none.join()\n"


@pytest.mark.parametrize("before", ["", A_STACK], ids=["no-thread-before", "a-thread-before"])
def test_mappings_at_the_limit(python, script, before):
    limit = int(open("/proc/sys/vm/max_map_count").read())
    if limit > 200_000:
        pytest.skip(f"vm.max_map_count is {limit}: filling it would take too long")
    program = script(
        before + "import mmap, os\nfd = os.memfd_create('x')\nos.ftruncate(fd, 8192)\nkept = []\n"
        "while True:\n    kept.append(mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ, offset=4096 * (len(kept) % 2)))"
    )
    # A few descriptors for so many mappings: each mmap object holds one.
    hard = __import__("resource").getrlimit(7)[1]
    if hard < limit + 100:
        program = script(
            before
            + "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.mmap.restype = ctypes.c_void_p\n"
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n"
            "fd = os.memfd_create('x')\nos.ftruncate(fd, 4096)\n"
            "while True:\n    if libc.mmap(None, 4096, 1, 1, fd, 0) == 2**64 - 1:\n"
            "        raise OSError(ctypes.get_errno(), 'mmap')"
        )
    _, receiver = watched([python, program])
    said = only(receiver, left="main")
    assert abs(said["counts"]["mappings"] - limit) <= 2, said["counts"]
    assert said["counts"]["mappings_torch"] == 0 and said["errno"] == 12


def test_address_space_limit(python, script):
    program = script(
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nx = bytearray(1 << 31)"
    )
    _, receiver = watched([python, program])
    said = only(receiver, type_name="MemoryError")
    assert said["counts"]["address_space_limit"] == 1 << 30
    assert 0 < said["counts"]["resident"] < said["counts"]["virtual_size"] < 1 << 30
    assert said["counts"]["threads"] == 1


def test_a_text_that_takes_six_bytes_a_character_is_told_of(python, script):
    program = script(
        "def f(n):\n    try:\n        if n:\n            f(n - 1)\n        raise ValueError(chr(1) * 2000)\n"
        "    except ValueError as error:\n        raise ValueError(chr(1) * 2000) from error\n"
        "f(7)"
    )
    _, receiver = watched([python, program])
    said = only(receiver, left="main")
    assert said["type_name"] == "ValueError" and said["text"] == chr(1) * 200


@pytest.mark.parametrize(
    "failure",
    [
        "a, b = KeyError(1), KeyError(2)\na.__context__, b.__context__ = b, a\nraise a",
        "raise ValueError(10 ** 5000)",
        "raise type('E' * 300_000, (Exception,), {})('x')",
        "def f(n):\n    return f(n - 1) if n else 1 / 0\nimport sys\nsys.setrecursionlimit(10**5)\nf(5000)",
    ],
    ids=["circle", "digits", "name", "deep"],
)
def test_exceptions_without_measure_are_told_of(python, script, failure):
    _, receiver = watched([python, script(failure)])
    said = only(receiver, left="main")
    assert said["type_name"][:300] in ("KeyError", "ValueError", "E" * 300, "ZeroDivisionError")
    assert len(said["stack"]) <= 40


FILLED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
held, size = [], 1 << 20
while size > 16:
    try:
        while True:
            held.append(bytes(size))
    except MemoryError:
        size //= 2
while True:
    held.append([held])
"""


def test_an_address_space_that_is_full_is_told_of(python, script):
    ended, receiver = watched([python, script(FILLED)])
    said = only(receiver, type_name="MemoryError")
    assert said["counts"]["address_space_limit"] == 300 << 20
    assert 290 << 20 < said["counts"]["virtual_size"]
    assert said["stack"] and ended.returncode == 1


def test_a_missing_path_is_looked_up_in_its_directory(python, tmp_path):
    _, receiver = watched([python, "-c", f"open({str(tmp_path / 'no' / 'such' / 'file')!r}, 'w')"])
    counts = only(receiver, errno=2)["counts"]
    assert counts["path"].endswith("no/such/file") and counts["path_free"] > 0


def test_text_chain_and_stack_are_bounded(python, script):
    program = script(
        "def f(n):\n    if n:\n        return f(n - 1)\n    raise ValueError('\\udc80\\x01\"\\\\é' + 'x' * 5000)\n"
        "try:\n    1/0\nexcept ZeroDivisionError:\n    try:\n        f(200)\n    except ValueError as e:\n"
        "        raise RuntimeError(e) from e"
    )
    _, receiver = watched([python, program])
    said = only(receiver, type_name="RuntimeError")
    assert len(said["text"]) == 2000 and said["text"][1:5] == '\x01"\\é'
    assert [line.split(":")[0] for line in said["chain"]] == ["ValueError", "ZeroDivisionError"]
    assert len(said["stack"]) <= 40


@pytest.mark.parametrize(
    "make",
    [
        "import multiprocessing as m\n    with m.get_context('spawn').Pool(1) as p:\n        p.map(work, [1])",
        "import concurrent.futures as c, multiprocessing as m\n"
        "    with c.ProcessPoolExecutor(1, mp_context=m.get_context('spawn')) as p:\n        list(p.map(work, [1]))",
    ],
)
def test_pool_and_executor_workers(python, script, make):
    program = script(f"def work(n):\n    raise LookupError('in the worker')\nif __name__ == '__main__':\n    {make}")
    done, receiver = watched([python, program])
    said = only(receiver, left="executor-worker")
    assert said["type_name"] == "LookupError" and said["stack"][-1].endswith(" work")
    main = only(receiver, left="main")
    assert main["pid"] != said["pid"] and done.returncode == 1


def test_an_unpicklable_item_of_a_queue_is_told(python, script):
    program = script(
        "import multiprocessing, time\nq = multiprocessing.Queue()\nq.put(lambda: 0)\nq.close()\nq.join_thread()"
    )
    _, receiver = watched([python, program])
    assert only(receiver, left="thread")["name"] == "QueueFeederThread"


def test_an_exception_behind_the_users_own_hook(python):
    _, receiver = watched([python, "-c", "import sys\nsys.excepthook = lambda *a: None\n1/0"])
    assert only(receiver, left="main")["type_name"] == "ZeroDivisionError"


def test_a_forked_child_has_a_connection_of_its_own(python, script):
    program = script(
        "import os\npid = os.fork()\nif pid == 0:\n    raise KeyError('child')\nos.waitpid(pid, 0)\nraise ValueError('parent')"
    )
    _, receiver = watched([python, program])
    child, parent = only(receiver, type_name="KeyError"), only(receiver, type_name="ValueError")
    assert child["pid"] != parent["pid"]
    assert [m["forked"] for m in receiver.of("hello")] == [False, True]


def test_many_failures_are_told_up_to_a_bound(python, script):
    program = script(
        "import threading\ndef f():\n    raise ValueError\nfor _ in range(40):\n    t = threading.Thread(target=f); t.start(); t.join()"
    )
    _, receiver = watched([python, program])
    assert len(receiver.of("exception")) == 16


def test_orderly_ends_say_goodbye_and_failures_do_not(python):
    _, receiver = watched([python, "-c", "pass"])
    (bye,) = receiver.of("bye")
    assert bye["figures"] == {}, "nothing to tell"
    _, receiver = watched([python, "-c", "import multiprocessing.util"])
    (bye,) = receiver.of("bye")
    assert bye["figures"]["allocated_blocks"] > 0
    _, receiver = watched([python, "-c", "import os, sys; pid = os.fork(); pid and os.waitpid(pid, 0); sys.exit(0)"])
    forked = {message["pid"]: message["forked"] for message in receiver.of("hello")}
    assert {forked[bye["pid"]]: bye["figures"] != {} for bye in receiver.of("bye")} == {True: True, False: False}
    _, receiver = watched([python, "-c", "1/0"])
    assert receiver.of("bye") == []


def test_interrupts_and_exits_are_no_failures(python):
    for code in ("raise KeyboardInterrupt", "raise SystemExit(3)", "import sys; sys.exit('x')"):
        _, receiver = watched([python, "-c", code])
        assert receiver.of("exception") == []


def test_start_does_not_import_what_the_program_does_not(python):
    code = "import sys; print(sorted(m for m in sys.modules if m not in ('_ullage_agent', '_ullage_common', '_ullage_hooks', '_ullage_safe_points', '_socket', '_tracemalloc', '_collections', 'itertools', 'atexit', 'gc')))"
    without = subprocess.run([python, "-c", code], env=os.environ, capture_output=True, check=True)
    done, _ = watched([python, "-c", code])
    assert done.stdout == without.stdout


# In a process of its own: threads that other tests left open and close descriptors.
ONCE_EACH = f"""
import fcntl, json, os, posix, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import agent_parts
counts, read, found, asked = agent_parts.load("counts"), [], {{}}, posix.readlink
own = fcntl.fcntl(os.open("/dev/null", os.O_RDONLY), fcntl.F_DUPFD, 700)
posix.readlink = lambda number, dir_fd: read.append(int(number)) or asked(number, dir_fd=dir_fd)
counts._count_descriptors(found, own)
listed = [int(number) for number in os.listdir("/proc/self/fd")]
print(json.dumps([found["fds"], listed, read, own]))
"""


def test_descriptors_are_read_once_each_although_ours_lies_far_above(script):
    done = subprocess.run([sys.executable, script(ONCE_EACH)], capture_output=True, check=True, text=True)
    number, listed, read, own = json.loads(done.stdout)
    highest = max(set(listed) - {own})
    assert number == len(listed) and [one for one in read if one > highest + 1] == [own]
