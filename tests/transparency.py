#!/usr/bin/env python3
"""Is a command under `ullage run` the same to its surroundings as without it?

Each case runs a command plainly and under `ullage run -q --` and compares what the outside sees: exit status as
a shell reports it, output, signals, the terminal. Real processes, real signals, a real terminal (tmux).

    python tests/transparency.py --ullage target/release/ullage
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import watched

PY = sys.executable
CASES = []


def case(function):
    CASES.append(function)
    return function


class World:
    """Where a command runs: plainly, or under ullage."""

    def __init__(self, ullage, folder):
        self.prefix = [ullage, "run", "-q", "--"] if ullage else []
        self.folder = folder
        self.name = "ullage" if ullage else "plain"
        self.env = dict(os.environ, ULLAGE_HOME=os.path.join(folder, "home"))

    def command(self, *words):
        return self.prefix + list(words)

    def shell_line(self, line):
        return " ".join(self.prefix + [line])

    def status(self, *words):
        """What `$?` is after the command."""
        script = '"$@" >/dev/null 2>&1; echo $?'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *self.command(*words)], env=self.env, capture_output=True, text=True
        )
        return done.stdout.strip()

    def start(self, code, *args, **kwargs):
        """A Python program; returns when it says that it is ready."""
        child = subprocess.Popen(
            self.command(PY, "-c", code, *args), env=self.env, stdout=subprocess.PIPE, text=True, **kwargs
        )
        line = child.stdout.readline()
        assert line == "ready\n", line
        return child


def as_shell_sees(code):
    return code if code >= 0 else 128 - code


@case
def exit_codes(world):
    return [world.status("sh", "-c", f"exit {code}") for code in (0, 1, 77, 255)]


@case
def deaths_by_signal(world):
    return [world.status("sh", "-c", f"kill -{name} $$") for name in ("TERM", "KILL", "SEGV", "ABRT", "USR1")]


@case
def output_and_error_streams(world):
    done = subprocess.run(
        world.command("sh", "-c", "echo out; echo err >&2; exit 3"), env=world.env, capture_output=True, text=True
    )
    return done.stdout, done.stderr, done.returncode


@case
def piped_stdin(world):
    done = subprocess.run(world.command("wc", "-c"), env=world.env, input=b"x" * 300000, capture_output=True)
    return done.stdout, done.returncode


@case
def reader_goes_away(world):
    line = world.shell_line("yes") + ' | head -n 2; echo "${PIPESTATUS[@]}"'
    done = subprocess.run(["bash", "-c", line], env=world.env, capture_output=True, text=True)
    return done.stdout, done.stderr


@case
def inherited_state(world):
    code = (
        "import os, resource, signal\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0))\n"
        "print(sorted(s for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n"
        "print([signal.getsignal(s) for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1)])\n"
        "print(os.getpgrp() == os.getsid(0), sorted(os.listdir('/proc/self/fd'))[:3])\n"
    )
    line = "ulimit -Sn 256; umask 027; trap '' HUP; exec \"$@\""
    words = ["bash", "-c", line, "bash", *world.command(PY, "-S", "-c", code)]
    done = subprocess.run(words, env=world.env, capture_output=True, text=True, start_new_session=True)
    return done.stdout, done.stderr, done.returncode


@case
def sigterm_to_the_started_process_alone(world):
    code = (
        # A handler may not print while the program does: CPython's buffers are not reentrant.
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *a: (print('got it', flush=True), sys.exit(9)))\n"
        "os.write(1, b'ready\\n')\n"
        "while True: signal.pause()\n"
    )
    child = world.start(code, start_new_session=True)
    child.send_signal(signal.SIGTERM)
    rest = child.stdout.read()
    return rest, as_shell_sees(child.wait())


@case
def alarm_set_before_exec(world):
    code = "import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])"
    script = '"$@" >/dev/null 2>&1; echo $?'
    words = ["sh", "-c", script, "sh", PY, "-c", code, *world.command("sleep", "60")]
    return [subprocess.run(words, env=world.env, capture_output=True, text=True).stdout.strip()]


@case
def sigterm_with_default_action(world):
    child = world.start("print('ready', flush=True)\nimport time\ntime.sleep(60)", start_new_session=True)
    child.send_signal(signal.SIGTERM)
    return as_shell_sees(child.wait())


@case
def usr1_and_hup_are_passed_on(world):
    code = (
        "import os, signal, sys\n"
        "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda *a: (seen.append('usr1'), os.write(1, b'usr1\\n')))\n"
        "signal.signal(signal.SIGHUP, lambda *a: (os.write(1, b'hup\\n'), sys.exit(4)))\n"
        "os.write(1, b'ready\\n')\n"
        "while True: signal.pause()\n"
    )
    child = world.start(code, start_new_session=True)
    child.send_signal(signal.SIGUSR1)
    first = child.stdout.readline()
    child.send_signal(signal.SIGHUP)
    return first, child.stdout.read(), as_shell_sees(child.wait())


@case
def command_that_leaves_children_behind(world):
    pidfile = os.path.join(world.folder, f"left-{world.name}")
    done = subprocess.run(
        world.command("sh", "-c", f"sleep 3600 >/dev/null 2>&1 & echo $! > {pidfile}; exit 5"), env=world.env
    )
    with open(pidfile) as file:
        pid = int(file.read())
    alive = os.path.exists(f"/proc/{pid}")
    os.kill(pid, signal.SIGKILL)
    return done.returncode, alive


@case
def killed_watcher_leaves_the_job(world):
    """SIGKILL of the started process: plainly the job dies of it; under ullage it must live on."""
    go, done = (os.path.join(world.folder, f"{name}-{world.name}") for name in ("go", "done"))
    os.mkfifo(go)
    os.mkfifo(done)
    code = f"print('ready', flush=True)\nopen({go!r}).read()\nopen({done!r}, 'w').write('done')"
    child = world.start(code, start_new_session=True)
    if world.prefix:
        child.kill()
        child.wait()
    # Each end of a pipe waits for the other: a job that is gone is a test that does not end.
    with open(go, "w"):
        pass
    with open(done) as file:
        return file.read() == "done"


@case
def not_found_and_not_executable(world):
    if not world.prefix:
        return "127", "126"
    return world.status("no-such-program-anywhere"), world.status("/etc/passwd")


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, world):
        self.socket = os.path.join(world.folder, f"tmux-{world.name}")
        self.tmux(
            "new-session", "-d", "-x", "80", "-y", "24", "env -u BASH_ENV PS1='ready> ' bash --norc -i", env=world.env
        )
        self.wait_for("ready>")

    def tmux(self, *words, env=None):
        done = subprocess.run(
            ["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True, env=env
        )
        return done.stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def line(self, text):
        self.keys("-l", text)
        self.keys("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, text, count=1):
        if watched.wait_for(lambda: self.screen().count(text) >= count):
            return True
        raise AssertionError(f"{text!r} did not appear on:\n{self.screen()}")

    def close(self):
        watched.end_terminal(self.tmux)


def in_terminal(function):
    def run(world):
        if shutil.which("tmux") is None:
            return "skipped"
        terminal = Terminal(world)
        try:
            return function(world, terminal)
        finally:
            terminal.close()

    run.__name__ = function.__name__
    return case(run)


@in_terminal
def ctrl_c(world, terminal):
    script = os.path.join(world.folder, "ctrl_c.py")
    with open(script, "w") as file:
        file.write(
            "import time\ntry: print('run'+'ning', flush=True); time.sleep(60)\n"
            "except KeyboardInterrupt: print('inter'+'rupted'); raise SystemExit(6)\n"
        )
    terminal.line(world.shell_line(f"{PY} {script}") + "; echo status=$?")
    terminal.wait_for("running")
    terminal.keys("C-c")
    terminal.wait_for("status=6")
    return terminal.screen().count("interrupted")


@in_terminal
def ctrl_c_with_default_action(world, terminal):
    words = f"sleep 3600.{os.getpid()}"
    terminal.line(world.shell_line(words) + "; echo status=$?")
    watched.wait_for(lambda: watched.runs(words))
    terminal.keys("C-c")
    terminal.line("echo after")
    terminal.wait_for("after", 2)
    # bash gives up the rest of the line where the program died of Ctrl-C.
    return (["no", "yes"]["status=130" in terminal.screen()],)


@in_terminal
def ctrl_z_and_fg(world, terminal):
    script = os.path.join(world.folder, "counter.py")
    with open(script, "w") as file:
        file.write(
            "import signal, time\nover, i = [], 0\nsignal.signal(signal.SIGCONT, lambda *_: over.append(1))\n"
            "while not over:\n    print('tick', i, flush=True)\n    i += 1\n    time.sleep(0.05)\nraise SystemExit(8)\n"
        )
    terminal.line(world.shell_line(f"{PY} {script}"))
    terminal.wait_for("tick 3")
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.keys("C-l")
    terminal.line("fg >/dev/null; echo status=$?")
    terminal.wait_for("status=8")
    return True


@in_terminal
def full_screen_program(world, terminal):
    """Draws, learns of a new size, suspends itself, comes back, ends."""
    file = os.path.join(world.folder, "text")
    with open(file, "w") as out:
        out.write("".join(f"line {n}\n" for n in range(200)))
    terminal.line(world.shell_line(f"less {file}"))
    terminal.wait_for("line 10")
    terminal.keys("G")
    terminal.wait_for("line 199")
    terminal.tmux("resize-window", "-x", "100", "-y", "30")
    terminal.wait_for("~")  # drawn anew: a key that comes before that is lost
    terminal.keys("g")
    terminal.wait_for("line 27")
    terminal.keys("q")
    terminal.line("echo status=$?")
    terminal.wait_for("status=0")
    return True


@in_terminal
def program_that_suspends_itself(world, terminal):
    script = os.path.join(world.folder, "suspend.py")
    with open(script, "w") as file:
        file.write(
            "import os, signal\nprint('be'+'fore', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\nprint('af'+'ter', flush=True)\n"
        )
    terminal.line(world.shell_line(f"{PY} {script}"))
    terminal.wait_for("before")
    terminal.wait_for("Stopped")
    terminal.line("fg >/dev/null; echo status=$?")
    terminal.wait_for("after")
    terminal.wait_for("status=0")
    return True


@in_terminal
def hang_up(world, terminal):
    log = os.path.join(world.folder, f"hup-{world.name}")
    script = os.path.join(world.folder, "hup.py")
    with open(script, "w") as file:
        file.write(
            "import signal, sys, time\n"
            "signal.signal(signal.SIGHUP, lambda *a: (open(sys.argv[1], 'a').write('hup\\n'), sys.exit()))\n"
            "print('run'+'ning', flush=True)\nwhile True: signal.pause()\n"
        )
    terminal.line(world.shell_line(f"{PY} {script} {log}"))
    terminal.wait_for("running")
    terminal.close()
    # Both end after the terminal, and ullage after the job.
    return watched.wait_for(lambda: os.path.exists(log)) and watched.wait_for(lambda: not run_with(script))


def run_with(argument):
    """Whether a process lives that was started with it."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if argument.encode() in file.read().split(b"\0"):
                    return True
        except OSError:
            pass
    return False


@case
def as_first_process_of_a_container(world):
    if os.geteuid() != 0:
        return "skipped"
    words = ["unshare", "--pid", "--fork", "--mount-proc", *world.command("sh", "-c", "sleep 0.2 & exit 7")]
    done = subprocess.run(words, env=world.env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    ullage = os.path.abspath(args.ullage)
    passed = failed = skipped = 0
    print(f"{'case':40} {'without and with ullage'}")
    for function in CASES:
        if args.only not in function.__name__:
            continue
        with tempfile.TemporaryDirectory(prefix="u") as folder:
            seen = []
            for world in (World(None, folder), World(ullage, folder)):
                try:
                    seen.append(function(world))
                except AssertionError as error:
                    seen.append(f"{world.name}: {error}")
        same = seen[0] == seen[1] and not isinstance(seen[0], str) and seen[0] is not False
        if seen == ["skipped", "skipped"]:
            skipped += 1
            print(f"{function.__name__.replace('_', ' '):40} skipped: needs tmux, or root")
            continue
        passed, failed = passed + same, failed + (not same)
        name = function.__name__.replace("_", " ")
        print(f"{name:40} {'same' if same else f'DIFFERENT: {seen[0]!r} / {seen[1]!r}'}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
