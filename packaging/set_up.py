#!/usr/bin/env python3
"""Fetches torch and compiles ullage side by side, and says how far each of them is.

    packaging/set_up.py --python VENV/bin/python --torch VERSION [--cargo CARGO]

On a terminal one line is redrawn; elsewhere a line is printed when something changed, at most every ten seconds. What
one of the two said is printed only where it failed. Compiled are the command and the module, into target/release, where
`pip install .` finds them.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# "    Building [=====>    ] 34/157: regex, syn"
UNITS = re.compile(r"(\d+)/(\d+)(?:: (.*))?")
# Of pip's lines these say what it does now.
STEPS = re.compile(
    r"\s*(Collecting|Downloading|Using cached|Installing|Successfully installed)\s+(\S+)(?: .*?\(([\d.]+ \w?B)\))?"
)


class Job:
    """Commands that run one after the other; `state` is what the last line said."""

    def __init__(self, name, commands, read):
        self.name, self.commands, self.read = name, commands, read
        self.state, self.lines, self.failed, self.took = "waits", [], False, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        begin = time.monotonic()
        for command, environment in self.commands:
            try:
                process = subprocess.Popen(
                    command,
                    env={**os.environ, **environment},
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,  # a carriage return ends a line too
                    errors="replace",
                )
            except OSError as error:
                self.lines.append(str(error))
                self.failed = True
                break
            for line in process.stdout:
                self.state = self.read(line) or self.state
                if line.strip() and not UNITS.search(line):
                    self.lines.append(line.rstrip())
            self.failed = process.wait() != 0
            if self.failed:
                break
        self.took = time.monotonic() - begin

    def told(self):
        if self.took is None:
            return f"{self.name}: {self.state}"
        return f"{self.name}: {'FAILED' if self.failed else 'done'} after {self.took:.0f} s"


def units(line):
    found = UNITS.search(line)
    return found and f"{found[1]} of {found[2]} parts"


def steps(line):
    found = STEPS.match(line)
    if not found:
        return None
    verb, what, size = found.groups()
    if verb == "Installing":
        return "unpacks"
    if verb == "Successfully installed":
        return "done"
    what = what.rsplit("/", 1)[-1]
    name = re.split(r"[-=<>~!(;]", what)[0]
    return f"{verb.lower()} {name}{f' ({size})' if size else ''}"


def watch(jobs, out, patience=10):
    """Says how the jobs stand until all of them have ended; whether all went well."""
    terminal, said, at = out.isatty(), "", 0.0
    while True:
        ended = all(job.took is not None for job in jobs)
        now = "; ".join(job.told() for job in jobs)
        if terminal and now != said:
            out.write(f"\r\x1b[K{now[:100]}")
        elif now != said and (ended or time.monotonic() - at >= patience):
            out.write(f"{now}\n")
            at = time.monotonic()
        else:
            now = said
        said = now
        out.flush()
        if ended:
            break
        next(job for job in jobs if job.took is None).thread.join(0.5)
    if terminal:
        out.write("\n")
    for job in jobs:
        if job.failed:
            out.write("\n".join([f"== {job.name}", *job.lines[-40:]]) + "\n")
    return not any(job.failed for job in jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--cargo", default="cargo")
    arguments = parser.parse_args()
    python = os.path.abspath(arguments.python)
    progress = {"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "80", "PYO3_PYTHON": python}
    build = [*arguments.cargo.split(), "build", "--release"]
    # Two runs, as setuptools makes them: another choice of packages is another set of features.
    compiles = [
        ([*build, "-p", "ullage-cli"], progress),
        ([*build, "--manifest-path", "python/native/Cargo.toml"], progress),
    ]
    install = [python, "-m", "pip", "install", "--progress-bar", "off", f"torch=={arguments.torch}", "numpy"]
    jobs = [Job("compiling ullage", compiles, units), Job("fetching torch", [(install, {})], steps)]
    return 0 if watch(jobs, sys.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
