#!/usr/bin/env python3
"""Runs parts of the tests one after the other, whatever becomes of each, and says at the end how each of them went.

    tests/parts.py MAKE PART [PART...]      a part is a target of the Makefile

The counts are those that a part's own programs print: cargo, pytest, and the programs beside this one.
"""

import re
import resource
import subprocess
import sys
import time

# "ok. 31 passed; 0 failed", "6 failed, 813 passed", "4 passed, 0 failed, 1 skipped": one program each.
COUNT = re.compile(r"\b(\d+) (passed|failed|errors?|skipped)\b")
# A line of counts and nothing else but what pytest and cargo put around it.
TOTAL = re.compile(r"^(=+ |test result: \w+\. )?\d+ (passed|failed|errors?|skipped)\b")


def counted(lines):
    """How many tests passed and failed, by the lines that count them."""
    passed = failed = 0
    for line in lines:
        if TOTAL.match(line):
            for number, word in COUNT.findall(line):
                passed += int(number) if word == "passed" else 0
                failed += int(number) if word in ("failed", "error", "errors") else 0
    return passed, failed


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(make, part):
    """(status, lines) of one part; its output passes through as it comes."""
    process = subprocess.Popen(
        [*make.split(), "--keep-going", "--no-print-directory", part],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,  # make may hand its jobs on
    )
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line.rstrip("\n"))
    return process.wait(), lines


def main():
    make, *parts = sys.argv[1:]
    if not parts:
        sys.exit(__doc__)
    rows, bad = [], 0
    for part in parts:
        print(f"== {part}", flush=True)
        wall, cpu = time.monotonic(), cpu_seconds()
        status, lines = run(make, part)
        passed, failed = counted(lines)
        bad += status != 0
        took = f"{time.monotonic() - wall:5.0f} s, {cpu_seconds() - cpu:5.0f} s of CPU time"
        word = "ok" if status == 0 else "FAILED"
        rows.append(f"{part:<18} {word:<7} {passed:>5} passed {failed:>4} failed   {took}")
    print("\n" + "\n".join(rows))
    print(f"{len(parts) - bad} of {len(parts)} parts passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
