"""A program behaves with the agent as it does without it."""

import os
import subprocess
import textwrap

import pytest

from receiver import Receiver, watched


def plain(command, env=None, **kwargs):
    environment = dict(os.environ if env is None else env)
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, **kwargs
    )


def same(command, env=None, **kwargs):
    """Runs it both ways; both must agree to the byte. What the agent said."""
    without = plain(command, env, **kwargs)
    done, receiver = watched(command, env=env, **kwargs)
    assert (done.returncode, done.stdout, done.stderr) == (without.returncode, without.stdout, without.stderr)
    return done, receiver


FAILURES = {
    "main": "def f():\n    1/0\nf()",
    "chained": "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    "exit-77": "import sys; sys.exit(77)",
    "exit-text": "import sys; sys.exit('words')",
    "thread": "import threading\ndef f():\n    raise OSError(28, 'full')\nt = threading.Thread(target=f, name='T'); t.start(); t.join()",
    "own-hook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1/0",
    "hook-is-default": "import sys, threading\nprint(sys.excepthook is sys.__excepthook__)\n"
    "print(threading.excepthook is getattr(threading, '__excepthook__', threading.excepthook))",
    "printed-by-program": "import sys\ntry:\n    1/0\nexcept Exception:\n    sys.excepthook(*sys.exc_info())",
    "path": "import sys; print(sys.path, [e for e in sys.path_importer_cache if 'ua-' in e])",
    "broken-import": "import traceback, nowhere.at_all",
    "print_exc": "import traceback\ntry:\n    1/0\nexcept Exception:\n    traceback.print_exc(); print(traceback.format_exc())",
    "signature": "import traceback, inspect\nprint(inspect.signature(traceback.print_exc), traceback.print_exc.__name__)",
    "find-spec": "import importlib.util as u\nfor n in ('threading', 'traceback', 'multiprocessing.util'):\n"
    "    s = u.find_spec(n); print(s.origin, vars(s.loader)); m = __import__(n, fromlist=['x'])\n"
    "    print(m.__spec__.origin, vars(m.__loader__), m.__spec__.loader is m.__loader__, type(m.__loader__))",
    "warnings": "import warnings, threading\nwarnings.warn('x', ResourceWarning)",
}


@pytest.mark.parametrize("case", list(FAILURES))
def test_streams_and_status_are_those_without_the_agent(python, script, case):
    same([python, "-X", "dev", script(FAILURES[case])])


PROCESS = """
import multiprocessing, sys
def work(how):
    if how == "exit":
        sys.exit(7)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "chain":
        try:
            1/0
        except ZeroDivisionError:
            raise RuntimeError("text")
    raise ValueError(how)
if __name__ == "__main__":
    p = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(sys.argv[2],), name="P")
    p.start(); p.join(); print(p.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("how", ["value", "chain", "exit", "interrupt"])
def test_a_process_prints_the_same_traceback(python, script, method, how):
    _, receiver = same([python, script(PROCESS), method, how])
    said = [message for message in receiver.of("exception") if message["left"] == "process"]
    assert len(said) == (1 if how in ("value", "chain") else 0)
    (began,) = receiver.of("process")
    assert (began["name"], began["target"], began["start_method"]) == ("P", "__main__.work", method)
    if said:
        assert said[0]["pid"] == began["pid"] and said[0]["name"] == "P"
        assert said[0]["stack"][-1].endswith(" work") and said[0]["started_by"] == method


SITE = {
    "none": (None, b"", 0),
    "prints": ("print('theirs', __name__, __file__.endswith('mine/sitecustomize.py'))", b"theirs", 0),
    "raises": ("raise ValueError('theirs')", b"", 0),
    "imports-missing": ("import nowhere_at_all", b"", 0),
}


@pytest.mark.parametrize("case", list(SITE))
def test_the_users_sitecustomize_runs_as_if_ours_were_not_there(python, script, tmp_path, case):
    text, expected, _ = SITE[case]
    mine = tmp_path / "mine"
    mine.mkdir()
    if text is not None:
        (mine / "sitecustomize.py").write_text(text)
    env = dict(os.environ, PYTHONPATH=str(mine))
    program = script(
        "import sys\nprint('sitecustomize' in sys.modules, sys.path)\ntry:\n    import sitecustomize\n"
        "    print(sitecustomize.__file__)\nexcept ImportError as e:\n    print(e, e.name)"
    )
    done, receiver = same([python, program], env=env)
    assert expected in done.stdout
    assert receiver.of("hello")


def test_a_limit_on_files_leaves_no_byte_code_that_is_cut_off(python):
    once = f"{python} -c 'print(1)'"
    # That of sitecustomize is CPython's to write; `ullage run` brings it with it.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for blocks in (1, 2, 3):
        _, receiver = same(["sh", "-c", f"(ulimit -f {blocks}; {once}); {once}"], env=environment)
        assert len(receiver.of("hello")) == 2, blocks


def test_a_child_python_gets_the_agent_and_the_same_path(python, script):
    child = "import sys; print(sys.path)"
    _, receiver = same(
        [python, script(f"import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', {child!r}]))")]
    )
    assert len(receiver.of("hello")) == 2


def test_a_crash_does_not_list_the_agents_library(python, script):
    program = script(
        "import faulthandler, os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nfaulthandler.enable()\nos.abort()"
    )
    done, receiver = watched([python, program])
    assert b"Fatal Python error" in done.stderr and b"ullage" not in done.stderr
    assert receiver.of("hello")


# A hook that refuses what the agent would do, and keeps what it was told of.
AUDITED = """
import gc, inspect, pickle, sys, time, types
print(type(sys.addaudithook), inspect.signature(sys.addaudithook), pickle.loads(pickle.dumps(sys.addaudithook)) is sys.addaudithook)
seen = set()
def hook(event, arguments):
    seen.add(event)
    if event in ("sys._getframe", "sys._current_frames", "exec", "gc.get_referents"):
        raise RuntimeError(event)
sys.addaudithook(hook=hook)
import queue
waiting, until, kept = queue.Queue(), time.monotonic() + 2, []
while time.monotonic() < until:
    kept.append(bytearray(1 << 20)); waiting.put(bytes(1 << 18)); gc.collect(); time.sleep(0.02)
print(sorted(event for event in seen if event.startswith(("gc.", "sys.", "socket", "os."))), "compile" in seen)
"""


@pytest.mark.parametrize("switched_off", [False, True])
def test_an_audit_hook_of_the_program_is_told_nothing_of_the_agent(python, script, switched_off):
    program = script("import queue\n" + AUDITED)
    if not switched_off:
        same([python, program])
    else:
        done, _ = watched([python, program], env=dict(os.environ, ULLAGE_AGENT_NO_AUDIT="1"))
        assert done.stdout != plain([python, program]).stdout, done


def test_a_program_that_saves_its_garbage_finds_none_of_ours(python, script):
    program = "import gc\ngc.set_debug(gc.DEBUG_SAVEALL)\ngc.collect()\nprint([type(one) for one in gc.garbage])"
    same([python, script(program)])


@pytest.mark.parametrize("off", [{"ULLAGE_DISABLE": "1"}, {"ULLAGE_AGENT_SOCKET": ""}])
def test_switched_off_it_says_nothing(python, off):
    with Receiver() as receiver:
        env = dict(receiver.environment(), **off)
        done = subprocess.run(
            [python, "-c", "import sys; print('_ullage_agent' in sys.modules, '_ullage' in repr(sys.meta_path))"],
            env=env,
            capture_output=True,
            check=True,
        )
    assert done.stdout == b"False False\n"
    assert receiver.messages == []


def test_without_a_listener_nothing_is_hooked(python, tmp_path):
    with Receiver() as receiver:
        env = dict(receiver.environment(), ULLAGE_AGENT_SOCKET=str(tmp_path / "nobody"))
        code = "import sys, os; print(len(os.listdir('/proc/self/fd')), '_ullage' in repr(sys.meta_path), type(sys.excepthook).__name__)"
        done = subprocess.run([python, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout == b"4 False builtin_function_or_method\n"


def test_a_peer_that_went_away_harms_nothing(python, script):
    program = script(
        textwrap.dedent("""
        import sys
        sys.stdin.readline()
        import os
        pid = os.fork()
        if pid == 0:
            1/0
        os.waitpid(pid, 0)
        1/0
    """)
    )
    receiver = Receiver()
    process = subprocess.Popen(
        [python, program],
        env=receiver.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    receiver.close()
    out, err = process.communicate(b"go\n")
    assert process.returncode == 1 and out == b""
    assert err.count(b"ZeroDivisionError") == 2 and b"agent" not in err


def test_a_sigpipe_at_its_default_does_not_kill(python, script):
    program = script("import signal, sys\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nsys.stdin.readline()\n1/0")
    receiver = Receiver()
    process = subprocess.Popen(
        [python, program], env=receiver.environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    receiver.close()
    _, err = process.communicate(b"go\n")
    assert process.returncode == 1 and b"ZeroDivisionError" in err


def test_a_silent_peer_holds_nobody_up(python, script):
    done, receiver = watched([python, script("1/0")], acknowledge=False)
    assert done.returncode == 1 and len(receiver.of("exception")) == 1


CLOSES = """
import os, sys
ours = [int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n) or True]
ours = [n for n in ours if n > 2 and n < 1 << 20]
os.closerange(3, 1 << 16)
kept = {}
for number in ours:
    fd = os.open(sys.argv[1] + str(number), os.O_RDWR | os.O_CREAT)
    if fd != number:
        os.dup2(fd, number); os.close(fd)
    kept[number] = os.fstat(number).st_ino
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
def check():
    for number, inode in kept.items():
        facts = os.fstat(number)
        assert facts.st_ino == inode and facts.st_size == 0, (number, facts)
check()
import atexit
atexit.register(lambda: print("checked", check(), len(kept) >= 2))
raise ValueError("after closerange")
"""


def test_a_file_of_the_users_at_our_number_stays_untouched(python, script, tmp_path):
    done, receiver = watched([python, script(CLOSES), str(tmp_path / "file-")])
    assert b"checked None True" in done.stdout and b"after closerange" in done.stderr
    assert receiver.of("exception") == []
    assert all(path.stat().st_size == 0 for path in tmp_path.glob("file-*"))


def test_descriptors_are_closed_on_exec_and_kept_out_of_low_numbers(python, script):
    program = "import os, subprocess\nprint(os.open('/dev/null', 0), subprocess.check_output(['ls', '/proc/self/fd'], close_fds=False))"
    same([python, script(program)])


def test_asyncio_and_subprocesses(python, script):
    program = """
    import asyncio, subprocess, sys
    async def main():
        p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=subprocess.PIPE)
        print(await p.communicate(), await asyncio.get_running_loop().run_in_executor(None, lambda: 2))
    asyncio.run(main())
    """
    same([python, "-W", "default", script(textwrap.dedent(program))])


def test_python_2_and_old_pythons_only_chain():
    import shutil

    old = [found for name in ("python2.7", "python3.6", "python3.7", "python3.8") if (found := shutil.which(name))]
    import pathlib

    old += [str(path) for path in pathlib.Path.home().glob(".pyenv/versions/[23].[678]*/bin/python")]
    for python in old:
        _, receiver = same([python, "-c", "import sys; print(sys.path); sys.exit(3)"])
        assert receiver.messages == []
