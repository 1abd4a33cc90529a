#!/usr/bin/env python3
"""Does the live view behave in a real terminal? It draws, takes keys, and gives the terminal back, whatever ends it.

    terminal.py --ullage PATH --python PYTHON

Runs `ullage watch` in tmux beside a job; says so where there is no tmux. Times are printed, none is a bar.
"""

import argparse
import fcntl
import glob
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import watched

PATIENCE = 60

JOB = """
import ctypes, multiprocessing, os, signal, sys, time

def work(name):
    if name:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    held = [bytearray(30 << 20)]
    while True:
        time.sleep(0.2)

if __name__ == "__main__":
    names = [b"", b"\\x1b[2J\\x1b]0;x\\x07"]
    for name in names:
        multiprocessing.Process(target=work, args=(name,), daemon=True).start()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.1)
"""


def until(what, fetch, wanted):
    """What `fetch` gives as soon as it is wanted; the last of it where it never is."""
    end = time.monotonic() + PATIENCE
    while True:
        got = fetch()
        if wanted(got) or time.monotonic() > end:
            return got
        time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tmux:
    """A terminal of this size that runs a shell script."""

    def __init__(self, test, script, width=80, height=24):
        self.socket = os.path.join(test.folder, f"tmux-{time.monotonic_ns()}")
        self.env = test.env
        self.call("new-session", "-d", "-x", str(width), "-y", str(height), f"sh -c '{script}'")

    def call(self, *words):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout

    def screen(self):
        return self.call("capture-pane", "-p")

    def shows(self, text):
        return until(text, self.screen, lambda screen: text in screen)

    def keys(self, *keys):
        self.call("send-keys", *keys)

    def children(self):
        """Pids of the programs that the shell runs."""
        shell = self.call("list-panes", "-F", "#{pane_pid}").strip()
        try:
            with open(f"/proc/{shell}/task/{shell}/children") as file:
                return [int(pid) for pid in file.read().split()]
        except OSError:
            return []

    def viewer(self):
        return until("a program", self.children, bool)[0]

    def end(self):
        watched.end_terminal(self.call)


class Test:
    def __init__(self, ullage, python, folder):
        self.ullage, self.python, self.folder = ullage, python, folder
        self.failed = 0
        self.env = dict(os.environ, ULLAGE_HOME=os.path.join(folder, "runs"), TERM="xterm-256color", LANG="C.UTF-8")
        self.env.pop("TMUX", None)
        self.job = os.path.join(folder, "job.py")
        with open(self.job, "w") as file:
            file.write(JOB)

    def check(self, what, holds, got=""):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}")
        if not holds:
            self.failed += 1
            print(got)

    def start(self, name, *before):
        """A job that ends when its file is there. Below ullage, its recording is there: a viewer takes the live one."""
        over = os.path.join(self.folder, name)
        command = [*before, self.python, self.job, over]
        process = subprocess.Popen(
            command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if before:
            live = os.path.join(self.env["ULLAGE_HOME"], "*", "now.json")
            assert until("a live run", lambda: glob.glob(live), bool), "nothing is recorded"
        return process, over

    def watch(self, arguments="", width=80, height=24, before=""):
        script = f"echo BEFORE; {before} {self.ullage} watch {arguments}; echo AFTER $?; stty -a; exec sleep 1000"
        return Tmux(self, script, width, height)

    def restored(self, what, tmux):
        screen = tmux.shows("AFTER")
        screen = until("modes", tmux.screen, lambda screen: "icanon" in screen)
        modes = screen.replace("\n", " ").split()
        self.check(what, "BEFORE" in screen and "icanon" in modes and "echo" in modes and "LIVE" not in screen, screen)
        cursor = tmux.call("display-message", "-p", "#{cursor_flag} #{alternate_on}").strip()
        self.check(f"{what}: cursor and screen", cursor == "1 0", cursor)


def first_frame(test):
    """Time from the start of the command to the first frame that says how the run stands."""
    times = []
    for _ in range(3):
        begun = time.monotonic()
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(test.ullage, [test.ullage, "watch"], test.env)
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        said = b""
        while b"LIVE" not in said and time.monotonic() < begun + PATIENCE:
            if select.select([fd], [], [], PATIENCE)[0]:
                said += os.read(fd, 65536)
        times.append(time.monotonic() - begun)
        os.write(fd, b"q")
        while select.select([fd], [], [], PATIENCE)[0]:
            try:
                if not os.read(fd, 65536):
                    break
            except OSError:
                break
        os.waitpid(pid, 0)
        os.close(fd)
        test.check("a first frame, and q leaves", b"LIVE" in said, said)
    print(f"      first frame after {', '.join(f'{1000 * t:.0f}' for t in times)} ms")


def live(test):
    job, over = test.start("live", test.ullage, "run", "-q", "--")
    tmux = test.watch()
    screen = tmux.shows("LIVE")
    test.check("without an argument it shows the run that is live", "LIVE" in screen and "job.py" in screen, screen)
    screen = tmux.shows("trainer")
    test.check("processes have roles", "trainer" in screen and "main (" in screen, screen)
    first_frame(test)
    for key, text in [
        ("2", "each page once"),
        ("3", "nearest first"),
        ("4", "mapped by"),
        ("5", "started"),
        ("6", "Verdict"),
        ("?", "step through"),
        ("1", "subtree"),
    ]:
        tmux.keys(key)
        screen = tmux.shows(text)
        test.check(f"key {key}", text in screen, screen)
    tmux.keys("Left", "Left")
    test.check("a step back freezes", "FROZEN" in tmux.shows("FROZEN"))
    tmux.keys("G")
    until("live", tmux.screen, lambda screen: "FROZEN" not in screen)
    tmux.keys("/", "zzz")
    test.check("a filter", "no process matches" in tmux.shows("no process matches"))
    tmux.keys("Escape")
    test.check("Escape removes it", "trainer" in tmux.shows("trainer"))
    for width, height in [(120, 40), (200, 60), (40, 10), (8, 3), (80, 24)]:
        tmux.call("resize-window", "-x", str(width), "-y", str(height))
        wide = until("its size", tmux.screen, lambda screen, width=width: "LIVE" in screen or width < 20)
        test.check(f"{width} × {height}", len(wide.splitlines()) <= height and ("LIVE" in wide or width < 20), wide)
    other = test.watch(width=120, height=40)
    test.check("two viewers at once", "trainer" in other.shows("trainer"))
    raw = other.call("capture-pane", "-p", "-e")
    test.check("a hostile name steers nothing", "\x1b[2J" not in raw and "\x1b]" not in raw, repr(raw))
    title = other.call("display-message", "-p", "#{pane_title}")
    test.check("nor sets a title", title.strip() != "x", title)
    viewer = other.viewer()
    before, begun = cpu_seconds(viewer), time.monotonic()
    other.keys("5")
    other.shows("event, latest")
    os.kill(viewer, signal.SIGTERM)
    test.restored("restored after SIGTERM", other)
    test.check("with the signal's status", "AFTER 143" in other.screen(), other.screen())
    other.end()

    # The terminal goes, first with a hang-up that may be told, then with one that is ignored: only poll(2) tells it.
    for what, trap in [("hang-up", ""), ("hang-up, SIGHUP ignored", "trap '' HUP;".replace("'", '"'))]:
        gone = test.watch(before=trap)
        gone.shows("LIVE")
        viewer = gone.viewer()
        before = cpu_seconds(viewer)
        gone.end()
        left = until("its end", lambda pid=viewer: alive(pid), lambda lives: not lives)
        test.check(
            f"{what}: the viewer ends", not left, f"pid {viewer} used {cpu_seconds(viewer) - before if left else 0} s"
        )
    test.check("the job runs on", job.poll() is None)

    viewer = tmux.viewer()
    before, begun = cpu_seconds(viewer), time.monotonic()
    ticks = 10
    until("ticks", lambda: time.monotonic() - begun, lambda passed: passed > ticks)
    used = cpu_seconds(viewer) - before
    print(f"      the viewer used {100 * used / (time.monotonic() - begun):.2f} % of a core for 3 processes at 1 Hz")
    with open(over, "w"):
        pass
    screen = tmux.shows("ENDED")
    test.check("the end of the run is told, and the view stays", "ENDED" in screen and job.wait(PATIENCE) == 0, screen)
    tmux.keys("q")
    test.restored("restored after q", tmux)
    test.check("and the verdict is printed", "healthy" in tmux.call("capture-pane", "-p", "-S", "-50"), tmux.screen())
    tmux.end()


def killed(test):
    job, _ = test.start("never", test.ullage, "run", "-q", "--")
    tmux = test.watch()
    tmux.shows("trainer")
    tmux.keys("5")
    # The job itself, below ullage.
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as file:
        main = int(file.read().split()[0])
    with open(f"/proc/{main}/task/{main}/children") as file:
        workers = [int(pid) for pid in file.read().split()]
    os.kill(main, signal.SIGKILL)
    screen = tmux.shows("ENDED")
    test.check("a job killed by SIGKILL is shown as ended", "ENDED" in screen and "SIGKILL" in screen, screen)
    job.wait(PATIENCE)
    folders = [os.path.join(test.env["ULLAGE_HOME"], name) for name in os.listdir(test.env["ULLAGE_HOME"])]
    test.check("now.json was removed", not any(os.path.exists(os.path.join(folder, "now.json")) for folder in folders))
    test.check("verdict.json is there", all(os.path.exists(os.path.join(folder, "verdict.json")) for folder in folders))
    tmux.keys("q")
    test.restored("restored after the job's SIGKILL", tmux)
    tmux.end()
    for pid in workers:  # as after any SIGKILL, nobody else ends them
        os.kill(pid, signal.SIGKILL)


def attached(test):
    job, over = test.start("attached")
    tmux = test.watch(str(job.pid))
    screen = tmux.shows("main (")
    test.check("a pid is watched on the same screens", "LIVE" in screen and "main (" in screen, screen)
    with open(over, "w"):
        pass
    job.wait(PATIENCE)
    test.check("its end is told", "ENDED" in tmux.shows("ENDED"), tmux.screen())
    tmux.keys("q")
    test.restored("restored after a pid was watched", tmux)
    tmux.end()
    job, over = test.start("attached-2")
    tmux = test.watch(str(job.pid))
    tmux.shows("main (")
    tmux.keys("q")
    test.restored("restored where the job goes on", tmux)
    test.check("the job goes on", job.poll() is None)
    with open(over, "w"):
        pass
    job.wait(PATIENCE)
    tmux.end()


def lines(test):
    done = subprocess.run(
        [test.ullage, "watch"], env=test.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    test.check(
        "lines where there is no terminal",
        done.returncode == 0 and "\x1b" not in done.stdout + done.stderr,
        done.stderr,
    )
    tmux = test.watch("--plain")
    screen = tmux.shows("AFTER")
    test.check("lines with --plain", "process" in screen and "ENDED" not in screen, screen)
    tmux.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    args = parser.parse_args()
    if not shutil.which("tmux"):
        print("tmux is not here: the live view was not looked at")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(args.ullage), os.path.abspath(args.python), folder)
        for part in [live, killed, attached, lines]:
            part(test)
    print("all well" if not test.failed else f"{test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
