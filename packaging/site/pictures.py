#!/usr/bin/env python3
"""Pictures of real screens: commands are typed in a real terminal (tmux), and what it shows becomes an SVG file.

    pictures.py --ullage PATH --python PYTHON [--into docs/pictures] [--only NAME ...] [--text]

The job is examples/crash.py, as `train.py` and without the frames of its traceback; the live view shows a small
training run. With `--text` the screens are printed instead, with `--columns` as wide as a page wants to quote them.
"""

import argparse
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180
PROMPT = "$"

# Two workers of a loader, and a list that grows by some 50 MiB a minute; it ends after minutes, by itself.
GROWS = """
import time
import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    kept = []
    loader = DataLoader(torch.zeros(100_000, 512), batch_size=8, num_workers=2)
    for batch in loader:
        kept.append(batch.clone())
        time.sleep(0.02)
"""


class Terminal:
    """A shell in tmux, in a folder with `train.py` and with `ullage` and `python` on the path."""

    def __init__(self, folder, columns, rows):
        self.socket = os.path.join(folder, "tmux")
        # Without TMPDIR and TMUX.
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("ULLAGE_", "TM"))}
        self.environment.update(
            PATH=os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"],
            ULLAGE_HOME=os.path.join(folder, "runs"),
            TERM="xterm-256color",
            LANG="C.UTF-8",
            OMP_NUM_THREADS="1",
        )
        # A shell that is not interactive removes PS1 from its environment.
        shell = f"exec env 'PS1={PROMPT} ' bash --norc --noprofile"
        start = ["new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", os.path.join(folder, "job"), shell]
        self.call(*start)
        self.until(lambda: self.lines()[-1:] == [PROMPT], "a prompt")

    def call(self, *words):
        # Each part of a command has a bound, so that a terminal that hangs is noticed.
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout

    def lines(self, *how):
        return self.call("capture-pane", "-p", *how).rstrip("\n").split("\n")

    def until(self, holds, what):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise SystemExit(f"no {what} within {PATIENCE} s; the screen:\n" + "\n".join(self.lines()))
            time.sleep(0.1)

    def type(self, command):
        """Types a command, and waits for the next prompt."""
        self.call("send-keys", "-l", command)
        self.call("send-keys", "Enter")
        said = f"{PROMPT} {command}".rstrip()
        self.until(lambda: self.lines()[-1].rstrip() == PROMPT and said not in self.lines()[-1:], f"end of {command}")

    def start(self, command):
        self.call("send-keys", "-l", command)
        self.call("send-keys", "Enter")

    def shows(self, *texts):
        """Waits until one of them is on the screen."""
        self.until(lambda: any(text in line for line in self.lines() for text in texts), " or ".join(texts))

    def screen(self):
        """The screen with its colours, without the prompt that waits below it."""
        lines = self.lines("-e")
        return "\n".join(lines[:-1] if re.sub(r"\x1b\[[\d;]*m", "", lines[-1]).strip() == PROMPT else lines)

    def close(self):
        # Jobs in the background outlive their terminal: all of its session is killed.
        session = self.call("list-panes", "-F", "#{pane_pid}").strip()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(errors="replace").rpartition(")")[2].split()
                if fields[3] == session and stat.parent.name != session:
                    os.kill(int(stat.parent.name), signal.SIGKILL)
            except OSError:
                pass  # it exited meanwhile
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, capture_output=True)


def crash(terminal):
    terminal.type("ullage run -- python train.py")
    return terminal.screen()


def fixed(terminal):
    terminal.type("ullage run --fix -- python train.py")
    return terminal.screen()


def watch(terminal):
    terminal.start("ullage run -q --memory-max 3GiB -- python grows.py &")
    terminal.until(lambda: any(Path(terminal.environment["ULLAGE_HOME"]).glob("*/now.json")), "recording")
    terminal.type("clear")
    terminal.start("ullage watch")
    terminal.shows("loader worker 1")
    # How fast it grows: by the second or by the minute.
    terminal.shows(" a second", " a minute")
    screen = terminal.screen()
    terminal.call("send-keys", "q")
    return screen


# Name, what makes it, and how many rows the terminal has.
PICTURES = {"crash": (crash, 30), "fixed": (fixed, 16), "watch": (watch, 18)}


def svg(screen, columns, title):
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(screen), no_wrap=True, overflow="crop", soft_wrap=False)
    text = console.export_svg(title=title, unique_id="screen")
    # The font of the reader's machine: nothing is fetched.
    text = re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.S)
    return re.sub(r"font-family: [^;]*;", "font-family: monospace;", text)


def folder_for(folder, ullage, python):
    tools, job = os.path.join(folder, "bin"), os.path.join(folder, "job")
    os.makedirs(tools)
    os.makedirs(job)
    os.symlink(ullage, os.path.join(tools, "ullage"))
    # A link to a virtual environment's Python is another Python: it is called by its path.
    with open(os.path.join(tools, "python"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.quote(python)} "$@"\n')
    os.chmod(os.path.join(tools, "python"), 0o755)
    crash_job = (ROOT / "examples/crash.py").read_text(encoding="utf-8")
    with open(os.path.join(job, "train.py"), "w", encoding="utf-8") as file:
        # Frames of a traceback would show folders of this machine.
        file.write(crash_job.replace("import argparse\n", "import argparse\nimport sys\n\nsys.tracebacklimit = 0\n", 1))
    with open(os.path.join(job, "grows.py"), "w", encoding="utf-8") as file:
        file.write(GROWS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--into", default=ROOT / "docs/pictures", type=Path)
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES))
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--text", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("tmux"):
        sys.exit("tmux is needed for a real terminal")
    for name in arguments.only:
        make, rows = PICTURES[name]
        with tempfile.TemporaryDirectory(prefix="pictures-of-ullage-") as folder:
            folder_for(folder, os.path.abspath(arguments.ullage), os.path.abspath(arguments.python))
            terminal = Terminal(folder, arguments.columns, rows)
            try:
                screen = make(terminal)
            finally:
                terminal.close()
        if arguments.text:
            print(re.sub(r"\x1b\[[\d;]*m", "", screen))
        else:
            arguments.into.mkdir(parents=True, exist_ok=True)
            (arguments.into / f"{name}.svg").write_text(svg(screen, arguments.columns, "ullage"), encoding="utf-8")
            print(f"{name}: {len(screen.splitlines())} lines")


if __name__ == "__main__":
    main()
