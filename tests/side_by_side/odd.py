"""Small jobs that do something odd with their process: descriptors, signals, forks, hooks, filters, ends.

Data only: `JOBS` has a row for each. A job that needs what this machine lacks (root, a program) is left out and counted.
"""

import os
import shutil
import sys

PY = os.environ.get("SIDE_BY_SIDE_PYTHON", sys.executable)
JOBS = {}


class Job:
    """`command` as a list. `needs`: "root", or programs. `stdin`: text. `send`: a signal for its process group once it has
    written "ready". `env`: variables that are set, or unset where they are None."""

    def __init__(self, command, needs=(), stdin="", send=None, env=None):
        self.command, self.needs, self.stdin, self.send, self.env = command, needs, stdin, send, env or {}

    def missing(self, root):
        return [one for one in self.needs if not (root if one == "root" else shutil.which(one))]


def py(name, code, *options, **settings):
    JOBS[name] = Job([PY, *options, "-c", code.strip("\n")], **settings)


def sh(name, line, **settings):
    JOBS[name] = Job(["bash", "-c", line], **settings)


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PLAIN = shutil.which("python3", path="/usr/bin:/bin") or PY  # one that another user may run

# --- descriptors --------------------------------------------------------------------------------------------

py("close-all-then-raise", "import os\nos.closerange(3, 1 << 16)\nprint('closed', flush=True)\nraise ValueError('after')")
py(
    "close-all-then-open-many",
    """
import os, resource
os.closerange(3, 1 << 16)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
files = [open("/etc/passwd") for _ in range(1010)]
print({file.read(5) for file in files}, flush=True)
raise KeyError("then")
""",
)
py(
    "own-file-at-every-number",
    """
import os
held = os.open("/etc/passwd", os.O_RDONLY)
for number in range(3, 1020):
    if number != held:
        os.dup2(held, number)
inode = os.fstat(held).st_ino
if os.fork() == 0:
    os._exit(0)
os.wait()
print(all(os.fstat(number).st_ino == inode and os.lseek(number, 0, 1) == 0 for number in range(3, 1020)))
raise ValueError("at the end")
""",
)
py(
    "own-socket-at-every-number",
    """
import os, socket
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for number in range(900, 1020):
    os.dup2(one.fileno(), number)
other.setblocking(False)
if os.fork() == 0:
    os._exit(0)
os.wait()
try:
    print("somebody wrote", other.recv(4096))
except BlockingIOError:
    print("nobody wrote")
1 / 0
""",
)
py("lowest-descriptor", "import os\nprint([os.open('/dev/null', os.O_RDONLY) for _ in range(3)])")
py(
    "descriptors-of-a-child",
    "import os, subprocess\nr, w = os.pipe()\nos.set_inheritable(w, True)\n"
    "print(subprocess.check_output(['sh', '-c', f'echo through >&{w}; echo done'], pass_fds=[w]), os.read(r, 20))\n"
    "print(subprocess.check_output(['ls', '/proc/self/fd'], close_fds=False).split()[:3])",
)
sh("twenty-descriptors", f"""ulimit -n 20; exec {PY} -c '
import os
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error.errno, flush=True)
    raise
'""")
sh("stdout-closed", f"exec {PY} -c 'import sys; sys.exit(0 if sys.stdout is None else 4)' >&-")
sh("all-streams-closed", f"{PY} -c 'import sys; sys.exit(9 if sys.stderr is None else 4)' <&- >&- 2>&-; echo $?")
py("stderr-closed-then-raise", "import sys\nsys.stderr.close()\nraise ValueError('nobody hears')")
py("stderr-replaced", "import io, sys\nsys.stderr = io.StringIO()\nraise ValueError('nobody hears')")
sh("stdin-counted", "wc -c", stdin="x" * 300_000)
py("stdin-selected", "import select, sys\nprint(select.select([sys.stdin], [], [], 600)[0] == [sys.stdin], sys.stdin.read())", stdin="words\n")
sh("program-from-stdin", f"echo 'print(__name__); raise SystemExit(6)' | {PY} -")
sh("reader-goes-away", 'yes | head -n 1; echo "${PIPESTATUS[@]}"')
py("reader-of-python-goes-away", "import os, sys\nr, w = os.pipe()\nos.dup2(w, 1); os.close(r); os.close(w)\nprint('x' * 100000)")

# --- who it is -----------------------------------------------------------------------------------------------

JOBS["another-user"] = Job(
    [*NOBODY, PLAIN, "-c", "import os\nprint(os.getuid(), flush=True)\nif os.fork() == 0: os._exit(0)\nos.wait()\nraise ValueError('x')"],
    needs=("root", "setpriv"),
)
py(
    "another-user-midway",
    """
import os
os.setgid(65534); os.setuid(65534)
pid = os.fork()
if pid == 0:
    raise ValueError("in the child")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
import json, logging
raise SystemExit(4)
""",
    needs=("root",),
)
py(
    "another-root-midway",
    """
import os, json
os.chroot("/usr/share"); os.chdir("/")
pid = os.fork()
if pid == 0:
    try:
        import wave
    except ImportError as error:
        print("no module", error.name, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
raise ValueError("without its library")
""",
    needs=("root",),
)
JOBS["no-new-privileges"] = Job(
    ["setpriv", "--no-new-privs", PY, "-c", "print([l for l in open('/proc/self/status') if 'NoNew' in l], flush=True); 1/0"],
    needs=("setpriv",),
)
JOBS["own-pid-namespace"] = Job(
    ["unshare", "-pf", "--mount-proc", PY, "-c", "import os\nprint(os.getpid(), flush=True)\nif os.fork() == 0: os._exit(3)\nos.wait()\nraise ValueError('p')"],
    needs=("root", "unshare"),
)
JOBS["every-own-namespace"] = Job(
    ["unshare", "-pfimnuU", "-r", "--mount-proc", PY, "-c", "import os\nprint(os.getpid(), os.getuid(), flush=True)\nraise ValueError('p')"],
    needs=("root", "unshare"),
)
JOBS["own-network"] = Job(["unshare", "-n", PY, "-c", "raise ValueError('no network')"], needs=("root", "unshare"))
sh("session-and-terminal", f"{PY} -c 'import os; print(os.getsid(0) == os.getsid(os.getppid()), os.isatty(0), os.getcwd()[-3:])'; true")
py(
    "parent-of-an-orphan",
    """
import os
r, w = os.pipe()
up, down = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(down)
        os.read(up, 1)  # ends when its grandparent closes
        os.write(w, b"%d" % (os.getppid() == 1)); os._exit(0)
    os._exit(0)
os.wait(); os.close(up); os.close(down); os.close(w)
print("adopted by process 1:", os.read(r, 9))
""",
)
sh("limits", "ulimit -aS | grep -v 'open files'; cat /proc/self/oom_score_adj; grep -E '^(Sig[BI]|Cap|Seccomp|Cpus_allowed_list|NoNew)' /proc/self/status")
sh("limit-of-descriptors", "ulimit -n 300; exec bash -c 'ulimit -Sn'")
sh("environment", "env | grep -vE '^(ULLAGE|PYTHONPATH=|_=|SHLVL=)' | sort")
sh("a-mask-and-a-priority", f"umask 077; nice -n 3 {PY} -c 'import os; open(\"made\", \"w\"); print(oct(os.stat(\"made\").st_mode), os.nice(0))'")
sh("no-home", f"env -u HOME -u TMPDIR {PY} -c 'import os, tempfile; print(\"HOME\" in os.environ, tempfile.gettempdir())'")
sh("folder-that-is-gone", f"mkdir gone; cd gone; rmdir ../gone; {PY} -c 'print(1)'; echo $?")
py("parents-death-signal", "import ctypes\nprint(ctypes.CDLL(None).prctl(1, 9))")
JOBS["arguments-that-are-no-text"] = Job(["/bin/echo", b"\xff\xfe\x1b[31m", b"two\nlines"])
JOBS["empty-arguments"] = Job(["printf", "%s|", "", "a", ""])

# --- endings --------------------------------------------------------------------------------------------------

for number in (1, 3, 77, 255):
    sh(f"exit-{number}", f"exit {number}")
for code in ("None", "'words'", "300", "-1", "[1, 2]", "True"):
    py(f"sys-exit-{code}".replace("'", ""), f"import sys\nsys.exit({code})")
for signal in ("KILL", "SEGV", "TERM", "INT", "USR1", "XCPU"):
    sh(f"killed-by-{signal}", f"echo before; kill -{signal} $$; echo after")
py("segmentation-fault", "import ctypes, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nctypes.string_at(0)")
py("abort", "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nos.abort()")
py("os-exit", "import atexit, os\natexit.register(print, 'never')\nprint('once', flush=True)\nos._exit(3)")
py("exit-from-a-thread", "import threading, os\nthreading.Thread(target=lambda: os._exit(5)).start()\nthreading.Event().wait()")
py("daemon-thread-at-the-end", "import threading, time\ndef run():\n    while True: time.sleep(0.001)\nthreading.Thread(target=run, daemon=True).start()\nprint('end')")
py("atexit-order", "import atexit, threading\nfor n in range(3): atexit.register(print, n)\ndef fails(): raise ValueError('in atexit')\natexit.register(fails)\nthreading.Thread(target=print, args=('thread',)).start()")
py("replaced-by-a-shell", "import os\nprint('first', flush=True)\nos.execv('/bin/sh', ['sh', '-c', 'echo second; exit 3'])")
py("killed-while-it-handles", "import os\ntry:\n    1 / 0\nfinally:\n    os.kill(os.getpid(), 9)")
sh("cpu-limit", f"ulimit -c 0; (ulimit -t 1; exec {PY} -c 'while True: pass'); echo $?")
sh("file-size-limit", f"(ulimit -f 1; exec {PY} -c 'open(\"big\", \"wb\").write(bytes(1 << 20))'); echo $?")
sh("address-space-limit", f"ulimit -v 600000; {PY} -c 'held = []\nwhile True: held.append(bytearray(10 << 20))'; echo $?")
JOBS["too-many-processes"] = Job(
    [*NOBODY, "bash", "-c", f"ulimit -u 3; {PLAIN} -c 'import os\nfor n in range(2000):\n    if os.fork() == 0: os._exit(0)\n' 2>&1 | tail -n 1"],
    needs=("root", "setpriv"),
)

# --- signals ---------------------------------------------------------------------------------------------------

# One line and one frame, so that the traceback is the same whenever the signal comes.
py("ctrl-c", "import time\ntime.sleep(20 + bool(print('ready', flush=True)))", send="SIGINT")
py("ctrl-c-handled", "import threading\ntry:\n    print('ready', flush=True)\n    threading.Event().wait()\nexcept KeyboardInterrupt:\n    print('caught')\n    raise SystemExit(6)", send="SIGINT")
py("ctrl-c-and-children", """
import multiprocessing, threading, sys
def child(ready):
    try:
        ready.set()
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.exit(3)
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    ready = [fork.Event() for _ in range(3)]
    children = [fork.Process(target=child, args=(one,)) for one in ready]
    for one in children: one.start()
    for one in ready: one.wait()
    try:
        print("ready", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        for one in children: one.join()
        print([one.exitcode for one in children])
""", send="SIGINT")
py("terminated", "import threading\nprint('ready', flush=True)\nthreading.Event().wait()", send="SIGTERM")
py("terminated-gently", "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(9))\nprint('ready', flush=True)\nwhile True: signal.pause()", send="SIGTERM")
sh("hang-up-ignored", f"trap '' HUP; exec {PY} -c 'import signal\nprint(signal.getsignal(signal.SIGHUP))'")
sh("children-ignored", "trap '' CHLD; /bin/true; echo $?")
py("signals-as-they-were", "import signal\nprint([(s.name, signal.getsignal(s)) for s in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)], signal.pthread_sigmask(0, []))")
py("alarms-that-raise", """
import signal, gc, time
class Late(Exception): pass
fired = caught = 0
def handler(*_):
    global fired
    fired += 1
    raise Late
signal.signal(signal.SIGALRM, handler)
while fired < 400:
    try:
        before = fired
        signal.setitimer(signal.ITIMER_REAL, 0.0015)
        while fired == before:
            held = [[n] for n in range(300)]
            held.append(held)
    except Late:
        caught += 1
print("lost", fired - caught)
""")
py("alarms-in-sleep", """
import signal, time
class Late(Exception): pass
fired = caught = 0
def handler(*_):
    global fired
    fired += 1
    raise Late
signal.signal(signal.SIGALRM, handler)
while fired < 200:
    try:
        before = fired
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        while fired == before: time.sleep(0.0003)
    except Late:
        caught += 1
print("lost", fired - caught)
""")
py("wakeup-descriptor", "import asyncio, os, signal\nasync def main():\n    done = asyncio.Event()\n    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, done.set)\n    os.kill(os.getpid(), signal.SIGUSR1)\n    await done.wait()\n    print('told')\nasyncio.run(main())")
sh("stops-itself", f"{PY} -c 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP); print(\"goes on\")' & sleep 0.3; while kill -CONT $! 2>/dev/null; do sleep 0.05; done; wait $!; echo $?")

# --- forks and processes -----------------------------------------------------------------------------------------

sh("three-hundred-commands", "for number in $(seq 300); do /bin/true; done; exit 9")
py("double-forks", "import os\nfor n in range(30):\n    if os.fork() == 0:\n        if os.fork() == 0: os._exit(n)\n        os._exit(0)\nwhile True:\n    try: os.wait()\n    except ChildProcessError: break\nprint('done')")
py("fork-without-exec", "import os\nfor n in range(30):\n    pid = os.fork()\n    if pid == 0: os._exit(n)\n    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == n\nprint('thirty')")
py("fork-that-raises", "import os\npid = os.fork()\nif pid == 0: raise ValueError('child')\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
py("fork-in-a-thread", "import os, threading\ndef run():\n    pid = os.fork()\n    if pid == 0: os._exit(4)\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\nthread = threading.Thread(target=run); thread.start(); thread.join()")
py("preexec", "import os, subprocess\nprint(subprocess.run(['sh', '-c', 'umask'], preexec_fn=lambda: os.umask(0o31)).returncode)")
py("preexec-that-raises", "import subprocess\ndef fails(): raise ValueError('before exec')\ntry:\n    subprocess.run(['true'], preexec_fn=fails)\nexcept subprocess.SubprocessError as error:\n    print(error)")
py("spawned-by-posix", "import os\npid = os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 8'], os.environ)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
py("python-below-python", "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path, sys.argv); 1/0'], capture_output=True))")
sh("daemon", f"""{PY} -c '
import os
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/"); os.closerange(0, 1 << 16)
os.execv("/bin/sleep", ["sleep", "3000"])
'; echo back""")
sh("child-left-behind", "sleep 3000 & exit 5")
py("asyncio-processes", "import asyncio, sys\nasync def main():\n    asyncio.get_running_loop().slow_callback_duration = 600\n    one = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(1)', stdout=asyncio.subprocess.PIPE)\n    print(await one.communicate(), one.returncode, await asyncio.to_thread(lambda: 2))\nasyncio.run(main())", "-X", "dev")
py("terminal-of-its-own", "import os, pty, sys\npid, terminal = pty.fork()\nif pid == 0: os.execv(sys.executable, [sys.executable, '-c', 'import os; print(os.isatty(1))'])\nprint(os.read(terminal, 100)); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
JOBS["traced"] = Job(["strace", "-f", "-o", "/dev/null", PY, "-c", "print(1, flush=True); raise ValueError(2)"], needs=("strace",))
JOBS["below-a-debugger"] = Job(["gdb", "-q", "-batch", "-ex", "run", "--args", "/bin/false"], needs=("gdb",))
JOBS["ullage-below-ullage"] = Job(["@ULLAGE", "run", "-q", "--", PY, "-c", "print(1); import sys; sys.exit(7)"])

MULTI = """
import multiprocessing, sys
def double(x):
    if x == 13: raise ValueError("thirteen")
    return 2 * x
def leaves(code): sys.exit(code)
if __name__ == "__main__":
    context = multiprocessing.get_context("@METHOD")
"""
for method in ("fork", "spawn", "forkserver"):
    for name, body in {
        "pool": "    with context.Pool(2) as pool: print(pool.map(double, range(9)), list(pool.imap_unordered(double, [4])))",
        "pool-that-fails": "    with context.Pool(2) as pool: pool.map(double, [13])",
        "process-that-fails": "    one = context.Process(target=double, args=(13,), name='P'); one.start(); one.join(); print(one.exitcode)",
        "process-that-exits": "    one = context.Process(target=leaves, args=(7,)); one.start(); one.join(); print(one.exitcode)",
        "manager": "    with context.Manager() as manager:\n        d = manager.dict(a=1); d['b'] = 2; print(dict(d))",
        "queue-and-event": "    q = context.Queue(); one = context.Process(target=q.put, args=(list(range(5)),)); one.start(); print(q.get()); one.join()",
        "executor": "    from concurrent.futures import ProcessPoolExecutor\n    with ProcessPoolExecutor(2, mp_context=context) as pool: print(list(pool.map(double, range(5))))",
        "executor-that-breaks": "    import os\n    from concurrent.futures import ProcessPoolExecutor\n    with ProcessPoolExecutor(1, mp_context=context) as pool: print(type(pool.submit(os._exit, 1).exception()))",
    }.items():
        if method == "fork" or name in ("pool", "process-that-fails", "executor"):
            JOBS[f"{name}-{method}"] = Job(["@SCRIPT", MULTI.replace("@METHOD", method) + body])
py("segment-left", "from multiprocessing import shared_memory\none = shared_memory.SharedMemory(create=True, size=4096)\nprint(len(one.buf) >= 4096)")
py("semaphore-unlinked", "import multiprocessing, os\nlock = multiprocessing.Lock()\nwith lock: print(len([n for n in os.listdir('/dev/shm') if n == 'x']))")

# --- filters that kill ----------------------------------------------------------------------------------------------

FILTER = """
import ctypes, gc, os, struct, sys, time
def forbid(*numbers):
    # Load the number of the call; each of those ends the process, any other is allowed.
    code = [(0x20, 0, 0, 0)] + [(0x15, len(numbers) - n, 0, call) for n, call in enumerate(numbers)]
    code += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x80000000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(len(code), ctypes.addressof(text)))) == 0
OPENS, SOCKETS = (2, 257, 437), (41, 42, 44, 46)
pid = os.fork()
if pid == 0:
    @BODY
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
for name, body in {
    "collects": "forbid(*OPENS)\n    end = time.monotonic() + 2.5\n    while time.monotonic() < end: held = [[n] for n in range(1000)]; gc.collect(0)\n    os._exit(0)",
    "sleeps": "forbid(*OPENS)\n    time.sleep(1.5); time.sleep(0.1); os._exit(0)",
    "forks": "forbid(*SOCKETS)\n    if os.fork() == 0: os._exit(0)\n    os._exit(os.waitstatus_to_exitcode(os.wait()[1]) != 0)",
    "exits": "forbid(*SOCKETS); sys.exit(0)",
    "raises": "sys.stderr.close(); forbid(*OPENS); raise ValueError",
    "imports-nothing-new": "import threading, traceback\n    forbid(*SOCKETS)\n    one = threading.Thread(target=lambda: None); one.start(); one.join(); os._exit(0)",
}.items():
    JOBS[f"filtered-child-{name}"] = Job([PY, "-c", FILTER.replace("@BODY", body)])

# --- exceptions and hooks ----------------------------------------------------------------------------------------------

py("no-agent-possible-isolated", "print(1, flush=True); raise ValueError(3)", "-I")
py("no-agent-possible-no-site", "print(1, flush=True); raise ValueError(3)", "-S")
py("own-excepthook", "import sys\nsys.excepthook = lambda kind, *_: print('mine', kind.__name__)\nraise ValueError")
py("excepthook-deleted", "import sys\nprint(sys.excepthook is sys.__excepthook__, flush=True)\ndel sys.excepthook\nraise ValueError")
py("excepthook-that-fails", "import sys\ndef hook(*_): raise KeyError('in the hook')\nsys.excepthook = hook\nraise ValueError('x')")
py("thread-excepthook", "import threading\nthreading.excepthook = lambda told: print('mine', told.exc_type.__name__)\nthread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()")
py("thread-that-fails", "import threading\nthread = threading.Thread(target=lambda: 1 / 0, name='T'); thread.start(); thread.join()")
py("unraisable", "import sys\nclass Node:\n    def __del__(self): raise ValueError('in del')\ndef make(): Node()\nmake()\nsys.unraisablehook = lambda told: print('mine', told.exc_type.__name__)\nmake()")
py("recursion", "import sys\ndef f(): f()\ntry: f()\nexcept RecursionError: print('first', flush=True)\nf()")
py("text-of-an-exception-exits", "class Odd(Exception):\n    def __str__(self): raise SystemExit(9)\nraise Odd()")
py("text-of-an-exception-interrupts", "class Odd(Exception):\n    def __str__(self): raise KeyboardInterrupt\nraise Odd()")
py("text-of-an-exception-fails", "class Odd(Exception):\n    def __str__(self): raise ValueError\n    __repr__ = __str__\nraise Odd()")
py("text-nobody-asked-for", "class Odd(Exception):\n    def __str__(self): import os; os._exit(77)\ntry:\n    raise Odd()\nexcept Odd: pass\nprint('fine')")
py("text-that-is-counted", "class Odd(Exception):\n    def __str__(self): print('asked', flush=True); return 'x'\nraise Odd()")
py("huge-text", "raise ValueError('x' * 30_000_000)")
py("notes-and-causes", "try:\n    try: 1 / 0\n    except ZeroDivisionError as error: raise KeyError('a') from error\nexcept KeyError as error:\n    if hasattr(error, 'add_note'): error.add_note('note')\n    raise")
py("exception-group", "if 'ExceptionGroup' not in dir(__builtins__): raise SystemExit(1)\nraise ExceptionGroup('several', [ValueError(1), ExceptionGroup('inner', [KeyError(2)])])")
py("chain-that-is-a-circle", "a, b = ValueError('a'), ValueError('b')\na.__context__, b.__context__ = b, a\nraise a")
py("exception-without-a-traceback", "import sys\ntry: 1 / 0\nexcept ZeroDivisionError as error:\n    sys.excepthook(type(error), error, None)")
sh("syntax-error", f"printf 'def f(:\\n' > bad.py; {PY} bad.py")
py("module-that-is-not-there", "import traceback, nowhere.at_all")
sh("module-not-to-be-run", f"{PY} -m nowhere; {PY} -m json.nowhere; echo $?")
sh("file-that-is-not-there", f"{PY} nowhere.py")
py("exception-in-a-callback", "import ctypes\nkind = ctypes.CFUNCTYPE(None)\n@kind\ndef back(): raise ValueError('from C')\nback()\nprint('after')")

# --- what looks at the interpreter ------------------------------------------------------------------------------------------

py("collector-at-every-object", "import gc, json\ngc.set_threshold(1)\nfor n in range(300): assert json.loads(json.dumps({'a': [n, {'b': [1]}]}))['a'][0] == n\nprint('done')")
py("collector-off", "import gc\ngc.disable()\nring = []\nring.append(ring)\ndel ring\nprint(gc.isenabled(), gc.get_threshold(), gc.collect() >= 1)")
py("collectors-callbacks", "import gc\nseen = []\ngc.callbacks.append(lambda phase, info: seen.append(phase))\ngc.collect()\nprint(seen)")
py("objects-of-the-collector", "import gc, weakref\nclass Node: pass\nheld = [Node() for _ in range(5)]\nprint(sum(type(one) is Node for one in gc.get_objects()), [len(gc.get_referrers(one)) for one in held])")
py("tracemalloc-user", "import tracemalloc\ntracemalloc.start(3)\nheld = [bytes(1000) for _ in range(1000)]\nstatistic = tracemalloc.take_snapshot().statistics('lineno')[0]\nprint(statistic.count, statistic.traceback[0].lineno, tracemalloc.get_traceback_limit(), tracemalloc.is_tracing())")
py("faulthandler-user", "import faulthandler, sys, threading\nfaulthandler.enable()\ndef inner(): faulthandler.dump_traceback()\ninner()\nprint(faulthandler.is_enabled())")
py("faulthandler-at-a-crash", "import ctypes, faulthandler, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nfaulthandler.enable()\nctypes.string_at(0)")
py("trace-function", "import sys, time\nseen = []\ndef trace(frame, event, argument):\n    seen.append((frame.f_code.co_name, event))\n    return trace\nsys.settrace(trace)\ntime.sleep(0)\n[n for n in ()]\nsys.settrace(None)\nprint(seen)")
py("profile-function", "import sys, time, gc\nseen = []\ndef profile(frame, event, argument): seen.append((frame.f_code.co_name, event, getattr(argument, '__name__', None)))\nsys.setprofile(profile)\ntime.sleep(0); gc.collect()\nsys.setprofile(None)\nprint(seen)")
py("sleep-is-weakly-referenced", "import time, weakref\nprint(weakref.ref(time.sleep)() is time.sleep, len(weakref.WeakSet([time.sleep])))")
py("sleep-is-a-builtin", "import inspect, pickle, time, types\nprint(type(time.sleep), pickle.dumps(time.sleep, 2), inspect.isbuiltin(time.sleep), isinstance(time.sleep, types.BuiltinFunctionType), time.sleep.__self__, hash(time.sleep) == hash(time.sleep))")
py("sleep-that-fails", "import time\ntime.sleep('long')")
py("sleep-is-patched", "import time\nkept = time.sleep\ntime.sleep = lambda seconds: print('no', seconds)\ntime.sleep(5)\ntime.sleep = kept\ntime.sleep(0)\nprint('done')")
py("finders", "import importlib.util, sys\nfor name in ('threading', 'traceback', 'multiprocessing.util', 'json'):\n    spec = importlib.util.find_spec(name)\n    print(spec.origin, type(spec.loader), vars(spec.loader))")
py("source-of-modules", "import inspect, threading, traceback, multiprocessing.process as p\nprint([len(inspect.getsource(one)) for one in (threading.Thread.run, traceback.print_exc, p.BaseProcess._bootstrap)])")
py("search-path", "import sys\nprint(sys.path, sys.flags, sys.argv, sys.orig_argv[1:] if hasattr(sys, 'orig_argv') else 0)")
py("customised-site", "import sys, sitecustomize\nprint(sitecustomize.__file__)", env={"PYTHONPATH": "."})
sh("own-customised-site", f"mkdir own; echo 'print(\"theirs\", __name__)' > own/sitecustomize.py; PYTHONPATH=$PWD/own:$PYTHONPATH {PY} -c 'print(1)'")
py("warnings-are-errors", "import asyncio, concurrent.futures, json, logging, multiprocessing.pool, os, threading, traceback\nif os.fork() == 0: os._exit(0)\nos.wait()\nprint('none')", "-W", "error")
py("development-mode", "import threading, asyncio, time\nasync def main(): await asyncio.sleep(0)\nasyncio.run(main())\nopen('/dev/null')\ntime.sleep(0)", "-X", "dev")
py("resource-warning", "import socket, subprocess, tempfile\nsocket.socket()\ntempfile.TemporaryFile()\nsubprocess.Popen(['true'])", "-W", "always")
py("log-at-the-end", "import atexit, logging\nlogging.basicConfig(level=0)\natexit.register(logging.getLogger('x').warning, 'late')\nlogging.debug('first')")
py("unit-tests", "import unittest\nclass Case(unittest.TestCase):\n    def test_fails(self): self.assertEqual(1, 2)\n    def test_holds(self): pass\ntry:\n    unittest.main()\nexcept SystemExit as end: print(end.code)")
py("interactive", "import code, sys\ncode.InteractiveConsole().interact(banner='', exitmsg='')", stdin="1 / 0\nprint(2)\n")
py("subinterpreters-and-threads", "import threading, queue\nq = queue.Queue(2)\nthreads = [threading.Thread(target=q.put, args=(n,)) for n in range(5)]\nfor one in threads: one.start()\nprint(sorted(q.get() for _ in range(5)))\nfor one in threads: one.join()")
py("pickled-to-a-file", "import pickle, queue, time, threading\nprint(pickle.dumps([queue.Queue, time.sleep, threading.Thread, Exception('x')], 2))")
