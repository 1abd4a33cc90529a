"""ullage's own Rust tests on this kernel: one case a test program, as cargo built them (`--tests`)."""

import json
import os
import re

from guest import FOLDER, run
from registry import case

# Emulated, a property of 256 cases would take minutes.
ENVIRONMENT = {"PROPTEST_CASES": "32", "RUST_BACKTRACE": "0"}


def results(text):
    """(passed, failed, ignored) as the test program says it, or none."""
    said = re.search(r"^test result: \S+\. (\d+) passed; (\d+) failed; (\d+) ignored", text, re.MULTILINE)
    return tuple(map(int, said.groups())) if said else None


def run_tests(name, folder, artifacts):
    ended = run([f"{FOLDER}/tests/{name}", "--test-threads=2"], 400, env=ENVIRONMENT, cwd=folder)
    artifacts["output.txt"] = ended.out + ended.err
    said = results(ended.out)
    wrong = re.findall(r"^test (\S+) \.\.\. FAILED", ended.out, re.MULTILINE)
    yield "ended with 0", ended.code == 0, f"{ended.code} {wrong} {ended.err[-600:]}"
    yield "none failed", said is not None and said[1] == 0, said
    # A program without a test of its own (only another kind of target has them) says nothing wrong.
    yield f"{said[0] if said else 0} passed, {said[2] if said else 0} ignored", said is not None, said


def load():
    with open(f"{FOLDER}/settings.json") as file:
        tests = json.load(file)["tests"]
    for name, folder in sorted(tests.items()):
        if os.path.exists(f"{FOLDER}/tests/{name}"):
            case(f"tests: {name}")(lambda artifacts, name=name, folder=folder: run_tests(name, folder, artifacts))


load()
