#!/usr/bin/env python3
"""Runs parts of the tests one after the other, whatever becomes of each, and says at the end how each of them went.

    tests/parts.py MAKE PART[+PART...] [PART...]      a part is a target of the Makefile; A+B+C run side by side

What runs beside the first of such a group is printed when the group has ended. The counts are those that a part's own
programs print: cargo, pytest, and the programs beside this one.
"""

import concurrent.futures
import os
import re
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


def run(make, part, echo):
    """(part, its row in the table, whether it passed, its lines); `echo`: its output is passed on as it comes."""
    begin = time.monotonic()
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
        if echo:
            sys.stdout.write(line)
            sys.stdout.flush()
        lines.append(line.rstrip("\n"))
    _, status, used = os.wait4(process.pid, 0)  # with its children's CPU time
    process.returncode = status
    passed, failed = counted(lines)
    took = f"{time.monotonic() - begin:5.0f} s, {used.ru_utime + used.ru_stime:5.0f} s of CPU time"
    word = "ok" if status == 0 else "FAILED"
    return part, f"{part:<18} {word:<7} {passed:>5} passed {failed:>4} failed   {took}", status == 0, lines


def main():
    make, *groups = sys.argv[1:]
    if not groups:
        sys.exit(__doc__)
    begin, done = time.monotonic(), []
    for group in groups:
        first, *beside = group.split("+")
        print(f"== {first}{''.join(f', and beside it {part}' for part in beside)}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(len(beside) + 1) as threads:
            runs = [threads.submit(run, make, part, part == first) for part in (first, *beside)]
        done += [one.result() for one in runs]
        for part, _, _, lines in done[-len(beside) :] if beside else ():
            print("\n".join([f"== {part}", *lines]), flush=True)
    print("\n" + "\n".join(row for _, row, _, _ in done))
    print(f"{sum(well for _, _, well, _ in done)} of {len(done)} parts passed in {time.monotonic() - begin:.0f} s")
    return 0 if all(well for _, _, well, _ in done) else 1


if __name__ == "__main__":
    sys.exit(main())
