#!/usr/bin/env python3
"""Can each screen be read and pasted from? The short block that a run ends with, in every snapshot and after real runs.

No line is wider than the screen but for a single word, no word is cut, there are twelve lines at most, and no quantity
has two figures. `faults(text, columns)` is what scenarios/run.py asks of each of its cases.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SNAPSHOTS = ROOT / "crates/present/report/tests/snapshots"
LINES = 12
HEADINGS = ("ullage:", "Why", "Do", "Limit", "Led to", "Also", "More", "First", "Open", "Note", "Grows", "Left")
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURE = rf"{NUMBER}(?: (?:bytes|KiB|MiB|GiB|TiB))?"
REMARKS = ("fix:", "recording ", "the job ", "nothing will be recorded")


def block(text):
    """The lines of the last short block in what was printed."""
    lines = text.rstrip("\n").split("\n")
    begin = max((n for n, line in enumerate(lines) if is_headline(line)), default=None)
    if begin is None:
        return []
    end = begin + 1
    # Who outlived the job may print behind it.
    while end < len(lines) and lines[end].strip() and lines[end][:8].strip() in ("", *HEADINGS[1:]):
        end += 1
    return lines[begin:end]


def is_headline(line):
    return line.startswith("ullage: ") and not line[8:].startswith(REMARKS)


def faults(text, columns=80):
    """What is wrong with the short block at the end of a screen, in sentences; [] where nothing is."""
    lines = block(text)
    if not lines:
        return ["no short block"]
    found = []
    if len(lines) > LINES:
        found.append(f"{len(lines)} lines")
    bodies = [line[8:] if line[:8].strip() in HEADINGS else line.strip() for line in lines]
    for line, body in zip(lines, bodies):
        if len(line) > columns and len(body.removesuffix(" \\").split()) > 1:
            found.append(f"wider than {columns} columns: {line}")
    # The report in front of it has every word whole: a word that is followed by what was left out must be one of them.
    before = text.rpartition(lines[0])[0]
    words = {word.strip(".,;:") for word in before.split()}
    for last in re.findall(r"(\S+)…(?!\S)", " ".join(bodies)):
        if "Verdict" in words and last.strip(".,;:") not in words:
            found.append(f"a word is cut: {last}…")
    return found + quantities(" ".join(bodies))


def quantities(said):
    """Two figures for one thing: of one limit, of one rate, of one time that is left."""
    found = []
    used = {}
    for value, limit in re.findall(rf"({FIGURE}) of (?:the )?({FIGURE})", said):
        used.setdefault(limit, set()).add(value)
    found += [f"{sorted(values)} of one {limit}" for limit, values in used.items() if len(values) > 1]
    for what, pattern in {
        "rates of bytes": rf"({NUMBER} (?:bytes|[KMGT]iB)) a second",
        "deadlines": r"(?:met|full) in (?:about )?([\d.]+ \w+(?: [\d.]+ \w+)?)",
        "ends": r"(?:status -?\d+|killed|SIG\w+|healthy ·) (?:after )?([\d.]+ (?:ms|s|min|h|d)\b)",
        "peaks": rf"peak ({FIGURE})",
    }.items():
        values = set(re.findall(pattern, said))
        if len(values) > 1:
            found.append(f"several {what}: {sorted(values)}")
    return found


def snapshots():
    for path in sorted(SNAPSHOTS.glob("screen__short_*.snap")):
        head, text = path.read_text().split("\n---\n", 1)
        yield path.name, text, int(re.search(r"plain\((\d+)\)", head)[1])


def runs(ullage, home):
    """(name, what it printed, how many lines it may have)"""
    environment = {**os.environ, "ULLAGE_HOME": home, "NO_COLOR": "1"}

    def run(*command, options=(), send=None):
        job = subprocess.Popen(
            [ullage, "run", *options, "--", *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if send is not None:
            job.stdout.readline()
            job.send_signal(send)
        return job.communicate(timeout=60)[1]

    waits = ("sh", "-c", "echo ready; exec sleep 60")
    yield "exit 3", run("sh", "-c", "exit 3"), 1
    yield "exit 0", run("sh", "-c", "exit 0"), 3  # one of them where it was read before it ended
    yield "interrupted", run(*waits, send=signal.SIGINT), 2
    yield "a Python exception", run(sys.executable, "-c", "raise ValueError('boom')").partition("boom\n")[2], 3
    yield "whole", run("sh", "-c", "exit 3", options=["-v"]), 2
    quiet = run("sh", "-c", "exit 3", options=["-q"])
    yield "quiet", quiet or "ullage: said nothing", 1
    shown = subprocess.run([ullage, "report"], env=environment, capture_output=True, text=True).stdout
    yield "report", shown, 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ullage", required=True)
    arguments = parser.parse_args()
    # A shell without job control lets what it starts in the background ignore SIGINT, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wrong = []
    checked = 0
    for name, text, columns in snapshots():
        checked += 1
        wrong += [f"{name}: {fault}" for fault in faults(text, columns)]
    with tempfile.TemporaryDirectory() as home:
        for name, text, most in runs(arguments.ullage, home):
            checked += 1
            wrong += [f"{name}: {fault}" for fault in faults(text)]
            if len(block(text)) > most:
                wrong.append(f"{name}: more than {most} lines:\n{text}")
    for fault in wrong:
        print(fault)
    print(f"{checked} screens checked, {len(wrong)} faults")
    return 1 if wrong or checked < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
