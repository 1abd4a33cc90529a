"""Jobs that put something of their own in the way of whatever looks at a Python from inside: odd objects, replaced
functions, observers of the interpreter, tight limits, launchers that clean the environment.

Data only: `JOBS` has a row for each, of odd.py's kind.
"""

import textwrap

from odd import PY, Job

JOBS = {}


def py(name, code, *options, **settings):
    JOBS[name] = Job([PY, *options, "-c", code.strip("\n")], **settings)


def sh(name, line, **settings):
    JOBS[name] = Job(["bash", "-c", line], **settings)


def script(name, code, **settings):
    JOBS[name] = Job(["@SCRIPT", code.strip("\n")], **settings)


# Memory grows, collections find garbage and the program sleeps, for long enough that each kind of reading comes by.
GROWS = """
import gc, sys, time
def grow(make, seconds=3.0):
    kept, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        kept.append((make(), bytearray(200_000)))
        ring = [make()]
        ring.append(ring)
        del ring
        time.sleep(0.002)
        if len(kept) % 100 == 0:
            gc.collect()
    return kept
"""


def grows(name, code, *options, **settings):
    py(name, GROWS + textwrap.dedent(code).strip("\n"), *options, **settings)


# --- objects that a collector meets --------------------------------------------------------------------------------

grows("metaclass-that-refuses", """
class Refuses(type):
    def __getattribute__(cls, name):
        raise SystemExit(f"asked for {name}")
Odd = Refuses("Odd", (), {})
kept = grow(lambda: type.__call__(Odd))
print("done")
""")
grows("metaclass-that-counts", """
asked = []
class Counts(type):
    def __getattribute__(cls, name):
        asked.append(name)
        return type.__getattribute__(cls, name)
    def __instancecheck__(cls, one): asked.append("instancecheck")
    def __subclasscheck__(cls, one): asked.append("subclasscheck")
    __hash__ = type.__hash__
    def __eq__(cls, other): asked.append("eq"); return cls is other
class Odd(metaclass=Counts):
    pass
del asked[:]
kept = grow(Odd)
print(sorted(set(asked)))
""")
grows("descriptors-that-exit", """
class Exits:
    def __get__(self, *_): raise SystemExit("a descriptor was asked")
    def __set__(self, *_): raise SystemExit("a descriptor was set")
class Odd:
    __dict__ = __class__ = __slots__ = __module__ = __qualname__ = __len__ = __sizeof__ = __iter__ = Exits()
    nbytes = shape = element_size = untyped_storage = grad_fn = data_ptr = Exits()
kept = grow(lambda: object.__new__(Odd))
print("done")
""")
grows("sizes-that-lie", """
class Odd(list):
    def __sizeof__(self): return 1 << 60
    def __len__(self): return 1 << 60
    def __iter__(self): raise SystemExit("iterated")
    def __reduce_ex__(self, protocol): raise SystemExit("pickled")
kept = grow(lambda: Odd([1, 2]))
print("done")
""")
grows("proxies-and-mocks", """
import types, unittest.mock, weakref
class Target: pass
target = Target()
def make():
    return (unittest.mock.MagicMock(), weakref.proxy(target), types.MappingProxyType({}), types.SimpleNamespace())
kept = grow(make)
dead = [weakref.proxy(Target()) for _ in range(20)]
kept += grow(lambda: None, 1.5)
calls = [one for row, _ in kept if row for one in row[0].mock_calls]
print(calls)
""")
grows("finalizers-that-speak", """
import threading
main, elsewhere = threading.get_ident(), set()
class Speaks:
    def __init__(self): self.me = self
    def __del__(self):
        if threading.get_ident() != main: elsewhere.add(threading.get_ident())
kept = grow(Speaks)
print("in another thread:", len(elsewhere))
""")
grows("weak-references-that-speak", """
import threading, weakref
main, elsewhere, refs = threading.get_ident(), set(), []
class Node: pass
def told(_):
    if threading.get_ident() != main: elsewhere.add(1)
def make():
    one = Node(); one.me = one
    refs.append(weakref.ref(one, told))
    return None
kept = grow(make)
print("in another thread:", len(elsewhere))
""")
grows("modules-that-are-none", """
import types
class Lazy(types.ModuleType):
    def __getattribute__(self, name): raise SystemExit(f"a module was asked for {name}")
class Odd:
    def __getattr__(self, name): raise SystemExit(f"a module was asked for {name}")
for name in ("numpy", "torch", "pyarrow", "torch.nn", "pandas", "tempfile", "multiprocessing.process"):
    sys.modules[name] = Lazy(name) if len(name) % 2 else Odd()
sys.modules["none"] = None
kept = grow(lambda: [1])
for name in ("numpy", "torch", "pyarrow", "torch.nn", "pandas", "tempfile", "multiprocessing.process"):
    del sys.modules[name]
print("done")
""")
grows("names-that-are-no-text", """
class Key(str):
    def __eq__(self, other): raise SystemExit("a name was compared")
    __hash__ = str.__hash__
    def __str__(self): raise SystemExit("a name was shown")
class Odd: pass
def make():
    one = Odd()
    dict.__setitem__(one.__dict__, Key("a"), [1] * 50)
    dict.__setitem__(one.__dict__, 5, [1] * 50)
    return one
globals()[Key("kept")] = grow(make)
print("done")
""")
grows("deep-and-wide", """
def deep():
    one = []
    for _ in range(20_000): one = [one]
    return one
kept = [deep(), dict.fromkeys(range(300_000)), [None] * 1_000_000]
more = grow(lambda: [1])
while kept[0]: kept[0] = kept[0][0]
print("done")
""")
grows("frames-and-generators", """
def endless():
    local = [1] * 100
    while True: yield local
def make():
    one = endless(); next(one)
    async def never(): pass
    two = never(); two.close()
    return one, two, sys._getframe()
kept = grow(make)
print(len({next(one[0])[0] for one, _ in kept}))
""")

# --- functions that a program replaces -------------------------------------------------------------------------------

grows("collectors-callbacks-cleared", """
gc.callbacks.clear()
kept = grow(lambda: [1])
print(gc.callbacks)
""")
grows("collectors-callbacks-that-raise", """
sys.unraisablehook = lambda told: None
def fails(phase, info): raise KeyError(phase)
gc.callbacks.insert(0, fails)
gc.callbacks.append(fails)
kept = grow(lambda: [1])
print("done")
""")
grows("collector-that-is-replaced", """
real = gc.collect, gc.get_objects, gc.isenabled, gc.get_threshold
for name in ("get_objects", "isenabled", "enable", "disable", "get_threshold", "get_referrers", "get_count", "freeze"):
    def refuses(*_, name=name): raise SystemExit(f"gc.{name} was called")
    setattr(gc, name, refuses)
kept = grow(lambda: [1])
print("done")
""")
grows("builtins-that-are-replaced", """
import builtins
for name in ("len", "isinstance", "issubclass", "getattr", "hasattr", "id", "type", "repr", "str", "open", "sorted", "sum", "any", "max", "min", "map", "zip", "dict", "list", "set"):
    def refuses(*_, name=name, **__):
        import os
        os.write(2, b"a builtin was called: " + name.encode()); os._exit(70)
    setattr(builtins, name, refuses)
kept = grow(lambda: [1])
import os
os.write(1, b"done\\n")
os._exit(0)
""")
grows("sleep-that-is-wrapped", """
import functools
slept, real = [], time.sleep
@functools.wraps(real)
def counted(seconds):
    slept.append(seconds)
    return real(seconds)
time.sleep = counted
kept = grow(lambda: [1])
print(set(slept), counted.__wrapped__ is real, real.__name__)
""")
grows("clocks-that-are-replaced", """
real = time.monotonic
for name in ("time", "perf_counter", "process_time", "monotonic_ns", "time_ns"):
    setattr(time, name, None)
kept = grow(lambda: [1])
time.monotonic = lambda: (_ for _ in ()).throw(SystemExit("the clock was asked"))
until = real() + 1.5
while real() < until:
    gc.collect(); time.sleep(0.01)
print("done")
""")
py("hooks-that-are-wrapped", """
import sys, threading
before, before_in_threads, seen = sys.excepthook, threading.excepthook, []
def hook(kind, error, traceback):
    seen.append(kind.__name__)
    before(kind, error, traceback)
def in_threads(told):
    seen.append(told.exc_type.__name__)
    before_in_threads(told)
sys.excepthook, threading.excepthook = hook, in_threads
thread = threading.Thread(target=lambda: [][1], name="T"); thread.start(); thread.join()
print(seen, before is sys.__excepthook__, flush=True)
raise ValueError("main")
""")
py("fork-that-is-wrapped", """
import os, multiprocessing, functools
real, seen = os.fork, []
@functools.wraps(real)
def fork():
    pid = real()
    seen.append(pid == 0)
    return pid
os.fork = fork
os.register_at_fork(before=lambda: seen.append("before"), after_in_parent=lambda: seen.append("parent"), after_in_child=lambda: seen.append("child"))
def work():
    print(seen, flush=True)
    raise SystemExit(3)
if __name__ == "__main__":
    one = multiprocessing.get_context("fork").Process(target=work)
    one.start(); one.join()
    print(one.exitcode, seen)
""")
py("fork-hooks-that-raise", """
import os, sys
def fails(): raise ValueError("in a hook of fork")
told = []
sys.unraisablehook = lambda one: told.append(str(one.exc_value))
os.register_at_fork(before=fails, after_in_parent=fails, after_in_child=fails)
pid = os.fork()
if pid == 0: os._exit(len(told))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told)
""")
py("imports-that-are-replaced", """
import builtins, sys
real, seen = builtins.__import__, []
def imports(name, *rest, **more):
    seen.append(name)
    return real(name, *rest, **more)
builtins.__import__ = imports
import queue, threading, traceback, json, multiprocessing.pool
print([name for name in seen if "ullage" in name], "queue" in seen)
""")
py("meta-path-cleared", """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if getattr(one, "__module__", "") .startswith("_frozen") or getattr(one, "__name__", "").endswith("Importer")]
import queue, threading, traceback, json, multiprocessing.pool
sys.meta_path.clear()
try:
    import wave
except ImportError as error:
    print(error)
""")
py("modules-loaded-twice", """
import importlib, sys, time
for name in ("threading", "traceback", "queue", "multiprocessing.queues", "multiprocessing.reduction"):
    first = importlib.import_module(name)
    again = importlib.reload(first)
    del sys.modules[name]
    third = importlib.import_module(name)
    print(name, again is first, third is first)
one = third.ForkingPickler.loads(bytes(third.ForkingPickler.dumps([1])))
q = importlib.import_module("queue").Queue(); q.put(1); print(one, q.get(), type(q.queue).__name__)
""")

# --- observers of the interpreter ----------------------------------------------------------------------------------------

grows("traced-while-it-grows", """
import threading
seen = set()
def trace(frame, event, argument):
    seen.add((frame.f_code.co_filename[-20:], frame.f_code.co_name))
    return trace
threading.settrace(trace); sys.settrace(trace)
kept = grow(lambda: [1])
thread = threading.Thread(target=grow, args=(dict, 0.2)); thread.start(); thread.join()
sys.settrace(None)
print(sorted(name for name in seen if name[0] == "<string>"), [name for name in seen if "ullage" in name[0]])
""")
grows("profiled-while-it-grows", """
import threading
seen = set()
def profile(frame, event, argument): seen.add((frame.f_code.co_filename[-30:], event))
threading.setprofile(profile); sys.setprofile(profile)
if hasattr(threading, "setprofile_all_threads"): threading.setprofile_all_threads(profile)
kept = grow(lambda: [1])
sys.setprofile(None)
print(sorted(one for one in seen if "threading" not in one[0]))
""")
grows("monitored-while-it-grows", """
seen = set()
if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(3, "job")
    for event in ("PY_START", "PY_RETURN"):
        sys.monitoring.register_callback(3, getattr(sys.monitoring.events, event), lambda code, *_: seen.add(code.co_filename[-20:]))
    sys.monitoring.set_events(3, sys.monitoring.events.PY_START | sys.monitoring.events.PY_RETURN)
kept = grow(lambda: [1])
print(sorted(seen))
""")
grows("audited", """
seen = set()
def hook(event, arguments):
    text = repr(arguments) if event in ("open", "exec", "compile") else ""
    seen.add((event, "ullage" in text))
sys.addaudithook(hook)
import queue, threading, traceback
kept = grow(lambda: [1])
threading.Thread(target=lambda: None).start()
print(sorted(event for event, ours in seen if ours), sorted(event for event, _ in seen if event.startswith(("socket", "os.", "gc", "ctypes", "sys."))))
""")
grows("audit-hook-that-raises", """
def hook(event, arguments):
    if event in ("gc.get_objects", "gc.get_referrers", "gc.get_referents", "socket.connect", "socket.__new__", "sys._getframe", "sys._current_frames", "ctypes.dlopen", "exec", "compile", "object.__getattr__"):
        raise RuntimeError(f"audit: {event}")
sys.addaudithook(hook)
kept = grow(lambda: [1])
print("done")
raise ValueError("at the end")
""")
grows("audit-hook-with-a-lock", """
import threading
lock, seen = threading.Lock(), []
def hook(event, arguments):
    if event != "time.sleep":
        with lock: seen.append(event)
sys.addaudithook(hook)
until, kept = time.monotonic() + 3, []
while time.monotonic() < until:
    with lock:
        kept.append(bytearray(200_000))
        time.sleep(0.005)
print("done")
""")
py("audit-hook-that-raises-at-a-start", """
import os, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    with open(folder + "/usercustomize.py", "w") as file:
        file.write("import sys\\ndef hook(event, arguments):\\n    if event in ('socket.connect', 'socket.__new__', 'exec', 'marshal.loads'): raise RuntimeError(event)\\nsys.addaudithook(hook)\\n")
    done = subprocess.run([sys.executable, "-c", "print(1)"], env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "") + ":" + folder, "PYTHONUSERBASE": folder}, capture_output=True, text=True)
print(done.returncode, done.stdout, "RuntimeError" in done.stderr)
""")
grows("faulthandler-in-time", """
import faulthandler, os
sink = open(os.devnull, "w")
faulthandler.enable()
faulthandler.dump_traceback_later(0.3, repeat=True, file=sink)
kept = grow(lambda: [1])
faulthandler.cancel_dump_traceback_later()
print(faulthandler.is_enabled())
""")
py("subinterpreter", """
import sys
try:
    import _interpreters as sub
except ImportError:
    import _xxsubinterpreters as sub
for _ in range(3):
    one = sub.create()
    sub.run_string(one, "import sys, gc, time, threading, queue, os\\ngc.collect(); time.sleep(0.001)\\nq = queue.Queue()\\nfor n in range(70): q.put(bytes(1 << 18))\\nos.write(1, repr(sorted(n for n in sys.modules if 'ullage' in n)).encode())")
    sub.destroy(one)
import gc, time
gc.collect(); time.sleep(1.2); gc.collect()
print("done")
""")

# --- ends -------------------------------------------------------------------------------------------------------------

py("os-exit-in-atexit", "import atexit, os\natexit.register(os._exit, 5)\natexit.register(print, 'first', flush=True)\nraise ValueError('x')")
py("exception-in-atexit-and-threads", "import atexit, sys, threading, time\ndef late():\n    time.sleep(0.1); raise KeyError('late')\nthreading.Thread(target=late).start()\natexit.register(lambda: sys.exit(4))\nsys.exit(3)")
py("fork-in-atexit", "import atexit, os\ndef forks():\n    pid = os.fork()\n    if pid == 0: os._exit(0)\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\natexit.register(forks)\nraise ValueError('x')")
py("execs-in-atexit", "import atexit, os\natexit.register(os.execv, '/bin/sh', ['sh', '-c', 'echo replaced; exit 6'])")
py("descriptors-closed-at-the-end", "import atexit, os\natexit.register(os.closerange, 3, 1 << 16)\nprint('x', flush=True)\nraise ValueError('y')")
py("finalizers-at-the-end", "import gc, os, time\nclass Late:\n    def __del__(self): gc.collect(); time.sleep(0.001); os.write(1, b'finalized\\n')\nheld = Late()\nheld.me = held\ngc.disable()")

# --- limits ------------------------------------------------------------------------------------------------------------

grows("huge-recursion", """
import threading
sys.setrecursionlimit(50_000)
threading.stack_size(256 << 20)
def down(n): return gc.collect(0) * 0 + time.sleep(0.0001) if n == 0 else down(n - 1)
def run():
    for _ in range(300): down(20_000)
thread = threading.Thread(target=run); thread.start(); thread.join()
print("done")
""")
grows("low-recursion-limit", """
import threading
kept = []
def at_the_edge(depth=0):
    try:
        return at_the_edge(depth + 1)
    except RecursionError:
        gc.collect(0); time.sleep(0.001)
        return depth
sys.setrecursionlimit(60)
until, depths = time.monotonic() + 3, set()
while time.monotonic() < until:
    depths.add(at_the_edge()); kept.append(bytearray(100_000))
sys.setrecursionlimit(1000)
print(len(depths))
""")
py("tiny-stacks", GROWS + """
import threading
threading.stack_size(64 << 10)
def run():
    kept = grow(lambda: [1], 2.5)
threads = [threading.Thread(target=run) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print("done")
""".strip("\n"))
sh("tiny-main-stack", f"(ulimit -s 256; exec {PY} -c 'import gc, time\nfor _ in range(120): time.sleep(0.01); gc.collect()\nprint(1, flush=True); raise ValueError(2)'); echo $?")
# What a program may map of an address space that is limited: as much as without ullage, to within 16 MiB.
A_THREAD = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
for name, other, least in (("", "", 360), ("-and-threads", A_THREAD, 288)):
    sh("no-address-space" + name, f"""(ulimit -v 400000; exec {PY} -c '
import gc, mmap, time
{other}
kept = []
try:
    while True: kept.append(mmap.mmap(-1, 1 << 18)); gc.collect(0); time.sleep(0.002)
except OSError:
    size = len(kept); del kept
print(size // 4 >= {least}, flush=True)
raise ValueError(1)'); echo $?""")
sh("no-locked-memory-and-no-files", f"(ulimit -l 0; ulimit -c 0; ulimit -x 0 2>/dev/null; exec {PY} -c 'import time\ntime.sleep(1.2); time.sleep(0.1)\nprint(1)'); echo $?")
sh("no-data", f"(ulimit -d 60000; exec {PY} -c 'import gc, time\nkept = []\ntry:\n    while True: kept.append(bytearray(1 << 18)); time.sleep(0.01)\nexcept MemoryError: print(\"full\", flush=True); del kept\nraise ValueError(1)'); echo $?")
sh("no-file-may-grow", f"(ulimit -f 0; exec {PY} -c 'import time\ntime.sleep(1.2); time.sleep(0.1)\nprint(1)' | cat); echo $?")
sh("descriptors-all-in-use", f"""(ulimit -n 40; exec {PY} -c '
import gc, os, time
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: number = error.errno
until, kept = time.monotonic() + 2.5, []
while time.monotonic() < until: kept.append(bytearray(200_000)); gc.collect(0); time.sleep(0.005)
if os.fork() == 0: os._exit(0)
os.wait()
print(number, flush=True)
raise ValueError("at the end")
'); echo $?""")
sh("streams-closed-and-grows", f"{PY} -c '{GROWS}kept = grow(lambda: [1])\nimport os\nos._exit(8 if sys.stdout is None else 4)' <&- >&- 2>&-; echo $?")
sh("folder-removed-midway", f"mkdir gone; cd gone; {PY} -c '{GROWS}import os\nos.rmdir(os.getcwd())\nkept = grow(lambda: [1], 1.5)\nif os.fork() == 0: os._exit(0)\nos.wait()\nprint(sys.path[0] == \"\")'; echo $?")
grows("another-root-and-grows", """
import os
os.chroot("/usr/share"); os.chdir("/")
kept = grow(lambda: [1])
pid = os.fork()
if pid == 0: os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
raise ValueError("in another root")
""", needs=("root",))

# --- launchers and options --------------------------------------------------------------------------------------------------

sh("environment-that-is-cleaned", f"env -i PATH=$PATH {PY} -c 'import os, sys; print(sorted(os.environ), sys.path[1:3], flush=True); raise ValueError(1)'; echo $?")
sh("python-path-that-is-cleaned", f"env -u PYTHONPATH {PY} -c 'import os, sys; print([n for n in sys.modules if \"ullage\" in n], flush=True); raise ValueError(1)'; echo $?")
py("launcher-that-cleans", "import os, subprocess, sys\nkeep = {n: v for n, v in os.environ.items() if n in ('PATH', 'HOME', 'LANG', 'PYTHONHASHSEED')}\nfor options in ([], ['-I'], ['-E'], ['-s'], ['-S'], ['-I', '-S', '-E']):\n    done = subprocess.run([sys.executable, *options, '-c', 'import sys; print(sys.flags.isolated, len(sys.path), sys.warnoptions); 1 / 0'], env=keep, capture_output=True, text=True)\n    print(options, done.returncode, done.stdout, done.stderr)")
sh("python-path-that-is-replaced", f"mkdir mine; echo 'x = 1' > mine/own.py; PYTHONPATH=$PWD/mine {PY} -c 'import own, os; print(own.x, os.environ[\"PYTHONPATH\"][-4:])'; echo $?")
for options in (["-I", "-S", "-E"], ["-P"], ["-B"], ["-O"], ["-OO"], ["-b", "-b"], ["-q"], ["-R"], ["-u"], ["-X", "utf8"], ["-X", "no_debug_ranges"], ["-X", "tracemalloc=5"], ["-X", "faulthandler"], ["-X", "dev"], ["-W", "error"]):
    py("options" + "".join(options).replace("-X", "-").replace("=", "-"), "import sys, threading, queue, time, gc, os\nprint(sys.flags, sys._xoptions, sys.warnoptions, flush=True)\ntime.sleep(1.1); gc.collect(); time.sleep(0.01)\nif os.fork() == 0: os._exit(0)\nos.wait()\nraise ValueError('x')", *options)
sh("times-of-imports", f"{PY} -X importtime -c 'import queue, threading, traceback' 2>&1 | grep -v '^import time: self' | sed -E 's/^import time: +[0-9]+ \\| +[0-9]+ \\|//' | grep -v sitecustomize")
sh("verbose-imports", f"{PY} -v -c 'import queue' 2>&1 | grep -c '^import .queue' ")
grows("debug-hooks-asked-for-again", """
import ctypes, tracemalloc
for _ in range(2):
    ctypes.pythonapi.PyMem_SetupDebugHooks()
    kept = grow(lambda: bytes(10_000), 1.5)
    tracemalloc.start(); tracemalloc.stop()
print("done")
""", env={"PYTHONMALLOC": "debug"})
grows("tracing-begins-and-ends", """
import threading, tracemalloc
ended = threading.Event()
def traces():
    while not ended.wait(0.001):
        tracemalloc.start()
        ended.wait(0.001)
        tracemalloc.stop()
thread = threading.Thread(target=traces)
thread.start()
kept = grow(lambda: bytes(10_000))
ended.set()
thread.join()
print("done")
""")
for allocator in ("debug", "malloc", "malloc_debug", "pymalloc_debug"):
    grows(f"allocator-{allocator}", "kept = grow(lambda: [1])\nprint('done')\nraise ValueError(1)", env={"PYTHONMALLOC": allocator})
grows("malloc-that-checks", "kept = grow(lambda: [1])\nprint('done')\nraise ValueError(1)", env={"MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3", "MALLOC_ARENA_MAX": "1"})
py("development-mode-and-errors", "import asyncio, gc, queue, threading, time, multiprocessing.pool\nasync def main(): await asyncio.sleep(1.1)\nasyncio.run(main())\ngc.collect(); time.sleep(0.01)\nprint('done')", "-X", "dev", "-W", "error", env={"PYTHONASYNCIODEBUG": "1", "PYTHONTRACEMALLOC": "2"})
py("own-collector-settings", "import gc, sys\ngc.set_debug(gc.DEBUG_UNCOLLECTABLE | gc.DEBUG_SAVEALL)\nclass Node: pass\nfor _ in range(50):\n    one = Node(); one.me = one; del one\ngc.collect()\nprint(len(gc.garbage), {type(one).__name__ for one in gc.garbage}, gc.get_debug())\ngc.set_debug(0); gc.garbage.clear()")
py("frozen-heap", "import gc, os, time\nheld = [[n] for n in range(1000)]\ngc.freeze()\ncount = gc.get_freeze_count()\ntime.sleep(1.1); gc.collect()\nprint(gc.get_freeze_count() == count, gc.get_freeze_count() > 1000)\ngc.unfreeze()\nprint(gc.get_freeze_count())")
py("counts-of-references", "import gc, sys, time\nclass Node: pass\none = Node()\nheld = [one] * 3\nbefore = sys.getrefcount(one), sys.getrefcount(held)\nuntil, kept = time.monotonic() + 3, []\nwhile time.monotonic() < until: kept.append(bytearray(200_000)); time.sleep(0.005); gc.collect(0)\nprint(before, (sys.getrefcount(one), sys.getrefcount(held)) == before)")
py("greenlets-of-signals", "import signal, time, threading\nseen = []\nsignal.signal(signal.SIGPROF, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))\nsignal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)\nuntil, kept = time.monotonic() + 3, []\nwhile time.monotonic() < until: kept.append([[n] for n in range(200)])\nsignal.setitimer(signal.ITIMER_PROF, 0)\nprint(set(seen))")
py("signals-waited-for", "import os, signal, threading, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM])\nfor _ in range(30):\n    os.kill(os.getpid(), signal.SIGUSR1)\n    assert signal.sigwait([signal.SIGUSR1, signal.SIGALRM]) == signal.SIGUSR1\n    time.sleep(0.05)\nprint(signal.sigpending())")
script("zygote-beside-an-allocators-thread", """
import ctypes, gc, threading, time, torch
class Data(torch.utils.data.Dataset):
    def __init__(self): self.length = 4
    def __len__(self): return 4
    def __getitem__(self, index): return index
    def __setstate__(self, state):  # in a zygote, which `import pandas` gives such a thread
        named = threading.Event()
        def is_called(): ctypes.CDLL(None).prctl(15, b"jemalloc_bg_thd", 0, 0, 0); named.set(); threading.Event().wait()
        threading.Thread(target=is_called, daemon=True).start()
        named.wait()
        until = time.monotonic() + 0.5
        while time.monotonic() < until: gc.collect()
if __name__ == "__main__":
    for _ in range(2):
        print([batch.tolist() for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2)])
""")
# Where no thread is started for a look, its code runs between the program's: no handler and no tracer may notice.
ALARMS = """
import gc, signal, time
class Late(Exception): pass
fired, caught, armed = 0, 0, False
def alarm(*_):
    global fired
    if armed: fired += 1; raise Late
signal.signal(signal.SIGALRM, alarm); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
kept, until = [], time.monotonic() + 5
while time.monotonic() < until:
    try:
        armed = True
        kept.append([bytearray(2000) for _ in range(50)]); gc.collect(0); time.sleep(0.0005); armed = False
    except Late: armed = False; caught += 1
armed = False; signal.setitimer(signal.ITIMER_REAL, 0)
print(fired == caught, fired > 100)
"""
TRACES = GROWS + """
files = set()
def trace(frame, event, argument):
    files.add(frame.f_code.co_filename)
    return trace
sys.settrace(trace); sys.setprofile(trace)
kept = grow(lambda: [1])
sys.settrace(None); sys.setprofile(None)
print(sorted(files))
"""
for name, code in (("alarms-that-raise", ALARMS), ("tracer", TRACES)):
    sh(name + "-and-no-address-space", f"(ulimit -v 2000000; exec {PY} -c '{code}'); echo $?")
py("forks-of-a-thread-beside-a-loop", """
import gc, os, threading
gc.disable()
right = []
def forks():
    for number in range(300):
        child = os.fork()
        if child == 0: kept = [[n] for n in range(3000)]; gc.collect(); os._exit(number % 7)
        right.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == number % 7)
thread = threading.Thread(target=forks); thread.start()
kept = []
while thread.is_alive(): kept.append(bytearray(5000)); sum(range(3000))
print(sum(right))
""", "-W", "ignore")
