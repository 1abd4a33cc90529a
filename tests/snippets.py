#!/usr/bin/env python3
"""Every piece of Python that README.md and docs/ tell people to write is run here.

    tests/snippets.py [--python PYTHON] [-v]

Each runs as a program of its own, behind definitions of what the pages speak of (a dataset, `load`); a loader that it
makes is read to its end. It must end with 0. Prints how many ran; one that cannot run here is named with the reason.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What the pages speak of, in a module of its own, because workers import it again.
SPEAKS_OF = """
import torch
import ullage
from torch.utils.data import DataLoader

rows = [("a.jpg", 0, "one"), ("b.jpg", 1, "two")]


def load():
    return list(range(8))


class MyDataset:
    def __init__(self, data=...):
        self.data = load() if data is ... else data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return index


dataset = MyDataset()
"""
# A program of which the snippet is the body: what it makes or says last, where it is a loader, is read.
PROGRAM = """
import ast
from speaks_of import *

TEXT = {text!r}
if __name__ == "__main__":
    tree, last = ast.parse(TEXT), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "snippet", "exec"))
    made = [] if last is None else [eval(compile(last, "snippet", "eval"))]
    made += [one for one in list(globals().values()) if one not in made]
    for loader in made:
        if isinstance(loader, DataLoader):
            assert len(list(loader)) == len(loader) > 0
"""
LIBRARIES = ["pyarrow", "polars", "duckdb", "lightning", "transformers", "accelerate", "torchdata"]
NEEDS = {
    "ullage.freeze(": ("sys.version_info >= (3, 12)", "needs CPython 3.12"),
    **{
        f"{word} {name}": (f"importlib.util.find_spec({name!r})", f"needs {name}")
        for name in LIBRARIES
        for word in ("import", "from")
    },
}


def snippets():
    """(page, number within it, text) of each."""
    pages = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True))]
    for page in pages:
        with open(page, encoding="utf-8") as file:
            found = re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)
        for number, text in enumerate(found, 1):
            yield os.path.relpath(page, ROOT), number, text


def lacks(python, text):
    """Why it cannot run with this Python, or None."""
    for words, (condition, why) in NEEDS.items():
        if words in text:
            code = f"import sys, importlib.util; sys.exit(not ({condition}))"
            if subprocess.run([python, "-c", code], check=False).returncode != 0:
                return why
    return None


def run(python, folder, text):
    """(status, output) of one snippet."""
    for name, content in (("speaks_of.py", SPEAKS_OF), ("program.py", PROGRAM.format(text=text))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ULLAGE_")}
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"] if "torchrun" in text else []
    done = subprocess.run(
        [python, *torchrun, "program.py"],
        cwd=folder,
        env={**environment, "ULLAGE_HOME": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    python = os.path.abspath(arguments.python)
    with tempfile.TemporaryDirectory(prefix="snippets-of-ullage-") as folder:
        ullage = [python, "-m", "ullage", "run", "-q", "--record"]
        subprocess.run([*ullage, os.path.join(folder, "RUN"), "--", "sleep", "1"], check=True, timeout=120)
        export = [python, "-m", "ullage", "export", os.path.join(folder, "RUN"), "--format", "parquet"]
        subprocess.run([*export, "-o", os.path.join(folder, "DIR")], check=True, timeout=120, stdout=subprocess.DEVNULL)
        with subprocess.Popen([*ullage, os.path.join(folder, "LIVE"), "--", "sleep", "3600"]) as live:
            try:
                passed, failed, skipped = run_all(python, folder, arguments.verbose)
            finally:
                live.terminate()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def run_all(python, folder, verbose):
    """(passed, failed, skipped)"""
    passed = failed = skipped = 0
    for page, number, text in snippets():
        why = lacks(python, text)
        if why:
            skipped += 1
            print(f"not run  {page}, {number}: {why}")
            continue
        status, said = run(python, folder, text.replace("RUN/ticks.arrows", "LIVE/ticks.arrows"))
        passed, failed = passed + (status == 0), failed + (status != 0)
        if status != 0:
            print(f"FAILED   {page}, {number}: status {status}\n{said}")
        elif verbose:
            print(f"ran      {page}, {number}")
    return passed, failed, skipped


if __name__ == "__main__":
    sys.exit(main())
