#!/usr/bin/env python3
"""What does the page of a long run cost, and the verdict of a longer one? And do hostile names stay text in it?

    python benches/page.py --ullage PATH --footprint PATH --modules FOLDER [--python PYTHON] [--pictures FOLDER]

Three parts, each with its bars:

1. A simulated day of 64 busy processes (--footprint: the example of that name of ullage-recording): size of its page, time and
   memory to make it, time until it is drawn in headless Chromium, its heap; requests, errors of the console, violations of
   axe-core, errors of the Nu checker (--modules: a folder of npm with playwright-core, axe-core and vnu-jar).
2. Three days of 64 processes: time and memory of `ullage report`.
3. A job of 1,000 processes whose names are hostile: nothing of them runs, on the page or in its JSON.

What is not here (no Chromium, no java) is said, and not counted as right.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BARS = {
    "page_mb": 1.0,
    "page_s": 2.0,
    "page_memory_mb": 130,
    "drawn_ms": 1000,
    "heap_mb": 80,
    "verdict_s": 3.0,
    "verdict_memory_mb": 200,
}
HERE = os.path.dirname(os.path.abspath(__file__))

# 15 bytes are a name; the arguments are as long as they like.
HOSTILE = r"""
import ctypes, os, signal, sys, time
prctl = ctypes.CDLL(None).prctl
names = [b"</script><b>", b"<svg onload=", b"\x1b[31m<img>", b"'-alert(1)-'", b"&lt;b&gt;", b"{{7*7}}", b"\xe2\x80\xae<i>", b"</style><p>"]
children = []
for n in range(1000):
    child = os.fork()
    if not child:
        prctl(15, names[n % len(names)] + b"%d" % n, 0, 0, 0)
        time.sleep(60)
        os._exit(0)
    children.append(child)
time.sleep(4)
for child in children:
    os.kill(child, signal.SIGKILL)
"""
PAYLOADS = [
    "</script><script>window.ran = true</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "--><script>alert(1)</script><!--",
]


def measured(command, **more):
    """Seconds and largest resident set, in bytes, of a command that must end with 0; and its output."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, **more) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024, output


class Judge:
    def __init__(self):
        self.checked = self.failed = 0

    def bar(self, name, value, words):
        self.checked += 1
        wrong = value > BARS[name]
        self.failed += wrong
        print(f"{'WRONG' if wrong else 'ok':6} {words}: {value:.2f} (bar {BARS[name]})", flush=True)

    def none(self, words, found):
        self.checked += 1
        self.failed += bool(found)
        print(f"{'WRONG' if found else 'ok':6} {words}: {len(found)}{''.join(f'; {one}' for one in found[:3])}", flush=True)


def in_browser(judge, page, args, what):
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium or not shutil.which("node"):
        print(f"       {what}: no Chromium or no node here; nothing was drawn")
        return
    command = ["node", os.path.join(HERE, "page.mjs"), page, *([args.pictures] if args.pictures else [])]
    environment = {**os.environ, "MODULES": args.modules, "CHROMIUM": chromium}
    found = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    judge.bar("drawn_ms", found["drawn_ms"], f"{what}: ms from the parsed page to {found['plots']} drawn plots")
    judge.bar("heap_mb", found["heap_bytes"] / 1e6, f"{what}: MB of heap")
    judge.none(f"{what}: requests", found["requests"])
    judge.none(f"{what}: errors of the console", found["console"])
    judge.none(f"{what}: violations of axe-core ({found['axe_rules']} rules held)", found["axe"])
    judge.none(f"{what}: scripts of the job that ran", ["one"] if found["ran"] else [])


def by_nu(judge, page, args, what):
    jar = os.path.join(args.modules, "node_modules", "vnu-jar", "build", "dist", "vnu.jar")
    if not shutil.which("java") or not os.path.exists(jar):
        print(f"       {what}: no java or no vnu-jar here; the Nu checker did not look")
        return
    said = subprocess.run(["java", "-Xss8m", "-jar", jar, "--errors-only", page], capture_output=True, text=True)
    judge.none(f"{what}: errors of the Nu checker", said.stderr.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--footprint", required=True)
    parser.add_argument("--modules", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pictures", help="a folder for pictures of the pages")
    args = parser.parse_args()
    args.modules = os.path.abspath(args.modules)
    judge = Judge()
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "ULLAGE_HOME": f"{scratch}/home"}
        page = f"{scratch}/day.html"
        subprocess.run([args.footprint, "64", "busy", f"{scratch}/day", "24"], check=True, stdout=subprocess.DEVNULL)
        took, memory, _ = measured([args.ullage, "report", "--html", page, f"{scratch}/day"], env=environment)
        judge.bar("page_mb", os.path.getsize(page) / 1e6, "a day of 64 processes: MB of the page")
        judge.bar("page_s", took, "a day of 64 processes: seconds to make it")
        judge.bar("page_memory_mb", memory / 1e6, "a day of 64 processes: MB resident to make it")
        in_browser(judge, page, args, "a day of 64 processes")
        by_nu(judge, page, args, "a day of 64 processes")
        shutil.rmtree(f"{scratch}/day")

        subprocess.run([args.footprint, "64", "busy", f"{scratch}/days", "72"], check=True, stdout=subprocess.DEVNULL)
        took, memory, _ = measured([args.ullage, "report", "--json", f"{scratch}/days"], env=environment)
        judge.bar("verdict_s", took, "three days of 64 processes: seconds to the verdict")
        judge.bar("verdict_memory_mb", memory / 1e6, "three days of 64 processes: MB resident")
        shutil.rmtree(f"{scratch}/days")

        page = f"{scratch}/hostile.html"
        command = [args.ullage, "run", "-q", "--record", f"{scratch}/hostile", "--html", page, "--", args.python]
        subprocess.run([*command, "-c", HOSTILE, *PAYLOADS], env=environment, check=True)
        with open(page) as file:
            tags = file.read().count("<script")
        judge.none("1,000 hostile names: scripts beside the three of the page", list(range(tags - 3)))
        in_browser(judge, page, args, "1,000 hostile names")
        by_nu(judge, page, args, "1,000 hostile names")
    print(f"{judge.checked} checked, {judge.failed} wrong")
    return 1 if judge.failed else 0


if __name__ == "__main__":
    sys.exit(main())
