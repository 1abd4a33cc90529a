"""Whatever the agent does at a moment, what a signal handler raises then reaches the program, and shows no frame of ours."""

import subprocess

import pytest

import receiver
from receiver import watched
from test_agent_hot import eager
from test_agent_transparency import plain, same

# Each turn waits for its own signal: one that was lost shows as a turn that ended by itself. The agent looks at every
# collection and at every sleep, so that nearly all signals arrive in a look.
ALARMS = """
import gc, os, random, signal, sys, threading, time, traceback
random.seed(7)
gc.set_threshold(700)
class Late(Exception):
    pass
kind = KeyboardInterrupt if sys.argv[1] == "int" else Late
number = signal.SIGINT if sys.argv[1] == "int" else signal.SIGALRM
frames = set()
def handler(*_):
    global fired
    if armed:
        fired += 1
        raise kind
signal.signal(number, handler)
armed, fired, caught, kept = False, 0, 0, []
while not heard():
    gc.collect(0)
end = time.monotonic() + 600
while fired < 40 and time.monotonic() < end:
    kept = [{"number": [n]} for n in range(300)]
    before = fired
    try:
        armed = True
        if number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.004))
        else:
            threading.Timer(random.uniform(0.0001, 0.004), lambda: os.kill(os.getpid(), number)).start()
        while fired == before:
            some = [[n] for n in range(200)]
            time.sleep(0)
        armed = False
    except kind as error:
        caught += 1
        armed = False
        frames.update([frame.filename for frame in traceback.extract_tb(error.__traceback__)])
    armed = False
print(fired, fired - caught, [name for name in frames if "ullage" in name])
"""


@pytest.mark.parametrize("how", ["alarm", "int"])
def test_no_exception_of_a_handler_is_lost(python, script, tmp_path, monkeypatch, how):
    eager(tmp_path / "agent", monkeypatch)
    with receiver.Receiver(until=receiver.several(1, "memory")) as heard:
        done = subprocess.run(
            [python, "-X", "faulthandler", script(receiver.HEARD + ALARMS), how],
            env=heard.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    fired, _, rest = done.stdout.partition(" ")
    assert (done.returncode, rest, done.stderr) == (0, "0 []\n", ""), (done.stdout, done.stderr[-2000:])
    assert int(fired) >= 40 and len(heard.of("memory")) >= 3
    print(fired, "signals,", len(heard.of("memory")), "looks")


SANDBOX = """
import ctypes, gc, os, struct, sys, threading, time, warnings
warnings.simplefilter("ignore")  # of a fork beside threads
libc = ctypes.CDLL(None)
def forbid(*numbers):
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    for place, number in enumerate(numbers):
        code += struct.pack("HBBI", 0x15, len(numbers) - place, 0, number)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000) + struct.pack("HBBI", 0x06, 0, 0, 0x80000000)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(numbers) + 3, ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program) != 0:
        os._exit(77)
OPENS, TALKS = (2, 257, 437), (41, 42, 44, 46, 56)
def child(how):
    if how.startswith("thread-"):
        thread = threading.Thread(target=child, args=(how[7:],))
        thread.start()
        thread.join()
        os._exit(78)
    if how == "forks":
        forbid(41, 42, 44, 46)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os._exit(os.waitpid(pid, 0)[1] & 0x7F)
    forbid(*(TALKS if how == "exits" else OPENS))
    if how == "collects":
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            some = [[n] for n in range(1000)]
            gc.collect(0)
        os._exit(0)
    if how == "sleeps":
        for _ in range(6):
            time.sleep(0.3)
        os._exit(0)
    if how == "raises":
        os.close(2)
        raise ValueError
    sys.exit(0)
pid = os.fork()
if pid == 0:
    child(sys.argv[1])
else:
    status = os.waitpid(pid, 0)[1]
    print(sys.argv[1], status & 0x7F, status >> 8)
"""


@pytest.mark.parametrize(
    "how", ["collects", "sleeps", "forks", "exits", "raises", "thread-collects", "thread-sleeps", "thread-forks"]
)
def test_a_child_behind_a_filter_of_system_calls_lives(python, script, how):
    if how == "raises":
        # Its traceback cannot be printed everywhere: from CPython 3.13 on that opens the file, which kills it.
        done, without = watched([python, script(SANDBOX), how])[0], plain([python, script(SANDBOX), how])
        # 120: what it wrote lies in a buffer until its end.
        assert done.stdout == without.stdout
        assert done.stdout in (b"raises 0 1\n", b"raises 0 120\n", b"raises 31 0\n")
    else:
        done, _ = same([python, script(SANDBOX), how])
        assert done.stdout == f"{how} 0 0\n".encode()


ODD = {
    "exits-in-str": "class E(Exception):\n    def __str__(self):\n        raise SystemExit(9)\nraise E(1)",
    "counts-str": "class E(Exception):\n    def __str__(self):\n        print('asked'); return 'x'\nraise E(1)",
    "circle": "a, b = ValueError(1), ValueError(2)\na.__context__ = b\nb.__context__ = a\nraise a",
    "of-itself": "e = ValueError(1)\ne.args = (e,)\nraise RuntimeError(e)",
    "half-loaded": "import gc\ngc.set_threshold(1, 1, 1)\nimport json, threading, multiprocessing, queue, asyncio",
    "sleep": "import copy, pickle, time, types, weakref\nprint(time.sleep, type(time.sleep), weakref.ref(time.sleep)() is time.sleep,"
    " pickle.loads(pickle.dumps(time.sleep)) is time.sleep, copy.copy(time.sleep) is time.sleep, time.sleep.__self__)",
    "profile": "import sys, time, threading, traceback\nseen = []\n"
    "sys.setprofile(lambda frame, event, arg: seen.append(event + getattr(arg, '__name__', '')))\n"
    "time.sleep(1.1); time.sleep(0.1)\nsys.setprofile(None)\nprint(seen)",
}

# The agent looks at each of these moments: its first look, which imports nothing and may take long, comes first.
LOOKING = """
import gc, sys, threading, time
common = sys.modules.get("_ullage_common")
def look():
    if common is not None:
        common.native.next_sample(0.0)
    time.sleep(0)
look()
"""

CYCLES = """
here, seen, lock = threading.get_ident(), [], threading.RLock()
class Cycle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        seen.append((threading.get_ident() == here, lock.acquire(timeout=60), lock.release()))
gc.callbacks.append(lambda phase, info: seen.append((threading.get_ident() == here, True, None)))
gc.set_threshold(1, 1, 1)
for _ in range(40):
    with lock:
        Cycle()
        look()
gc.set_threshold(700, 10, 10)
print(set(seen), threading.active_count(), gc.isenabled())
gc.disable()
look()
print(gc.isenabled())
"""

ODD.update(
    {
        "finalizers": LOOKING + CYCLES,
        "forks-in-a-look": LOOKING
        + """
import os, warnings
warnings.simplefilter("ignore")  # of forks beside threads
going, disabled = True, 0
def forks():
    global going, disabled
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            os._exit(not gc.isenabled())
        disabled += os.waitpid(pid, 0)[1] != 0
    going = False
sys.setswitchinterval(1e-5)
thread = threading.Thread(target=forks)
thread.start()
while going:
    look()
thread.join()
print(disabled)
""",
        "mocks": LOOKING
        + """
import builtins
calls = []
def counted(name, original):
    def call(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)
    return call
for name in ("open", "len", "isinstance", "getattr", "type", "sorted"):
    setattr(builtins, name, counted(name, getattr(builtins, name)))
look()
gc.collect()
print(calls)
raise ValueError(1)
""",
        "profiler": LOOKING
        + """
import cProfile, pstats
profile = cProfile.Profile()
profile.enable()
look()
gc.collect()
profile.disable()
print(sorted(name for _, _, name in pstats.Stats(profile).stats if "next_sample" not in name))
if hasattr(sys, "monitoring"):
    seen = []
    sys.monitoring.use_tool_id(4, "some")
    sys.monitoring.register_callback(4, sys.monitoring.events.PY_START, lambda code, _: seen.append(code.co_name))
    sys.monitoring.set_events(4, sys.monitoring.events.PY_START)
    look()
    sys.monitoring.set_events(4, 0)
    print(seen)
""",
        "properties": """
class Kind(type):
    def __getattribute__(cls, name):
        asked.append(name)
        return super().__getattribute__(name)
class Odd(OSError, metaclass=Kind):
    @property
    def __class__(self):
        asked.append("__class__")
        return SystemExit
    def __getattribute__(self, name):
        asked.append(name)
        return super().__getattribute__(name)
asked = []
import atexit
atexit.register(lambda: print(asked))
raise Odd(1, "b")
""",
    }
)


@pytest.mark.parametrize("case", list(ODD))
def test_odd_programs_end_as_without_the_agent(python, script, case):
    same([python, script(ODD[case])])
