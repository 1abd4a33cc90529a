#!/usr/bin/env python3
"""torch's own tests of its DataLoader and its multiprocessing, with `ullage.install()` and without it.

For: that a program gets with ullage what it got from torch. Runs test_dataloader.py and test_multiprocessing.py of
torch 2.6.0 twice, each time in processes of their own, with ullage strict, and compares test by test. A test that
passes without and does not pass with is a bug of ullage's (exit status 1).

    python tests/torch_own.py [--python VENV/bin/python] [--only TEXT] [--timeout 900] [--fast]

The Python given has torch 2.6.0, numpy, expecttest, hypothesis, psutil, dill and ullage. The two files are not in
torch's wheel: they come from Debian's source package of it, through apt, or from a checkout's `test` folder that
`--files` names; they are kept in .torch-own. Tests that torch calls slow are run too, unless `--fast` is given.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

VERSION = "2.6.0"
SUITE = "trixie"  # the release of Debian that has this version
FILES = {
    "test_dataloader.py": "c955067aa66c0d9d74bff7ddabd3f912ab81164e0b133bd12d1debad557215a3",
    "test_multiprocessing.py": "5620527a6383a2a0865d2ebbdc222009d7eb83d22e9bc3a9201028766cbbc5e4",
}
CACHE = Path(__file__).resolve().parent.parent / ".torch-own"

# Without a GPU torch skips what passes CUDA memory between processes, and with it the loader's tests of start methods,
# data pipes and nested tensors, which need no GPU. The decorator is taken out as text. It stays in
# test_multiprocessing.py, where each test that has it calls .cuda() in another process, and would wait for ever.
_GUARD = re.compile(r"^ *@unittest\.skipIf\(not TEST_CUDA_IPC, .*\)\n", re.MULTILINE)

# Started by every Python of the run: test processes, the workers of spawn, and programs that tests run by `python -c`.
_SITE = '''\
import importlib.util
import sys


class Finder:
    """Calls ullage.install() as soon as the DataLoader is there, so that nobody imports torch because of us."""

    def find_spec(self, name, path, target=None):
        if name != "torch.utils.data.dataloader":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            import ullage

            ullage.install()

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
'''

PASSED = ("passed", "failed as expected")


# In a process that runs tests.


class Results(unittest.TestResult):
    """Writes each test's start and outcome to a file, which outlives a test that kills its process."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._outcome = "passed"
        self._why = ""

    def say(self, **record: Any) -> None:
        os.write(self._file, (json.dumps(record) + "\n").encode())

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome, self._why = "passed", ""
        self.say(start=test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.say(end=test.id(), outcome=self._outcome, why=self._why)

    def _set(self, outcome: str, err: Any = None) -> None:
        self._outcome = outcome
        if err is not None:
            self._why = f"{err[0].__name__}: {err[1]}"[:2000]

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._set("failed", err)
        if not isinstance(test, unittest.TestCase):  # setUpClass, or a module that cannot be imported
            self.say(end=str(test), outcome=self._outcome, why=self._why)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._set("failed", err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._set("failed", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._outcome, self._why = "skipped", reason

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._set("failed as expected", err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._set("passed unexpectedly")


def _flat(suite: Any) -> list[unittest.TestCase]:
    if isinstance(suite, unittest.TestCase):
        return [suite]
    return [test for one in suite for test in _flat(one)]


def run_tests(module: str, results: str, wanted: str) -> None:
    """Runs the tests whose names stand in the file `wanted`; with an empty name, says which there are."""
    sys.argv = sys.argv[:1]  # torch's test utilities read it when they are imported
    # Started in the folder of the test files: its children find the module there as well.
    sys.path.insert(0, os.getcwd())
    loaded = __import__(module)
    del loaded.load_tests  # insists on being the main program
    tests = _flat(unittest.defaultTestLoader.loadTestsFromModule(loaded))
    out = Results(results)
    if not wanted:
        out.say(tests=[test.id() for test in tests])
        return
    names = set(Path(wanted).read_text().split("\n"))
    importlib.import_module("torch.utils.data")
    if "ullage" in sys.modules:
        importlib.import_module("ullage.torch")  # as in a program whose loader has run: it watches torch's storages
    made = _count_queues()
    unittest.TestSuite([test for test in tests if test.id() in names]).run(out)
    arena = sys.modules.get("ullage._arena")
    out.say(queues=made[0], travelled=arena.travelled() if arena else None)


def _count_queues() -> list[int]:
    """How many queues of ullage's the tests make: none would mean that the run says nothing of ullage."""
    made = [0]
    context = sys.modules.get("ullage._context")
    if context is not None:
        original = context.Queue.__init__

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            made[0] += 1
            original(self, *args, **kwargs)

        context.Queue.__init__ = init
    return made


# In the process that compares.


class Run:
    """One file's tests, with ullage or without it."""

    def __init__(self, python: str, folder: Path, name: str, with_ullage: bool, timeout: float, fast: bool) -> None:
        self.python, self.folder, self.timeout = python, folder, timeout
        self.module = name.removesuffix(".py")
        self.label = f"{self.module}.{'with' if with_ullage else 'without'}"
        self.env = {**os.environ, "PYTORCH_TEST_WITH_SLOW": "0" if fast else "1"}
        if with_ullage:
            path = [str(folder / "site"), *filter(None, [self.env.get("PYTHONPATH")])]
            self.env["PYTHONPATH"] = os.pathsep.join(path)
            self.env["ULLAGE_STRICT"] = "1"
        self.outcomes: dict[str, tuple[str, str]] = {}
        self.queues = 0
        self.travelled: Counter[str] = Counter()
        self.seconds = 0.0

    def names(self) -> list[str]:
        records = list(self._start(None))
        if records and "tests" in records[0]:
            return list(records[0]["tests"])
        sys.exit(f"{self.module} cannot be imported: see {self._log}")

    def run(self, names: list[str]) -> None:
        """Runs these tests; where one kills its process or takes too long, the next ones run in a new process."""
        begin = time.monotonic()
        left = list(names)
        while left:
            done = self._some(left)
            if not done:
                sys.exit(f"no test of {self.label} could be started: see {self._log}")
            left = [name for name in left if name not in done]
            outcomes = self.folder / f"{self.label}.outcomes.json"
            outcomes.write_text(json.dumps(self.outcomes, indent=1))
        self.seconds += time.monotonic() - begin

    def _some(self, names: list[str]) -> set[str]:
        done: set[str] = set()
        running = None
        for record in self._start(names):
            if "start" in record:
                running = record["start"]
            elif "end" in record:
                self.outcomes[record["end"]] = record["outcome"], record["why"]
                done.add(record["end"])
                running = None
            elif "queues" in record:
                self.queues += record["queues"]
                self.travelled.update(record["travelled"] or {})
                done.update(names)
            elif running is not None:
                self.outcomes[running] = record["stopped"], ""
                done.add(running)
        for name in names:
            if name in done:
                self.outcomes.setdefault(name, ("not run", "its class could not be set up"))
        return done

    def share(self) -> str:
        """How much of the loaders' messages went through the arena, by bytes."""
        through = self.travelled["copied"] + self.travelled["in_place"]
        whole = through + self.travelled["passed_by"]
        if not whole:
            return ""
        return f", {through:,} of {whole:,} bytes of messages through the arena ({through / whole:.2%})"

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.label}.log"

    def _start(self, names: list[str] | None) -> Any:
        """Yields what the process says, and at last how it ended where that was not by itself."""
        results, wanted = self.folder / f"{self.label}.jsonl", ""
        results.unlink(missing_ok=True)
        if names is not None:
            wanted = str(self.folder / f"{self.label}.names")
            Path(wanted).write_text("\n".join(names))
        command = [self.python, __file__, "--in-process", self.module, str(results), wanted]
        with open(self._log, "ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        read = 0
        last = time.monotonic()
        timed_out = False
        while True:
            ended = process.poll() is not None
            lines = results.read_text().split("\n")[:-1] if results.exists() else []
            for line in lines[read:]:
                last = time.monotonic()
                yield json.loads(line)
            read = len(lines)
            if ended:
                break
            if time.monotonic() - last > self.timeout:
                timed_out = True
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            time.sleep(0.1)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what a test left behind must not disturb the next ones
        except ProcessLookupError:
            pass
        if timed_out:
            yield {"stopped": f"no end after {self.timeout:.0f} s"}
        elif process.returncode:
            yield {"stopped": f"the process died ({process.returncode})"}


def fetch(files: Path | None) -> Path:
    """The folder that has the two files as torch made them."""
    if files is None and all((CACHE / name).exists() for name in FILES):
        files = CACHE
    if files is None:
        _from_debian()
        files = CACHE
    for name, digest in FILES.items():
        if hashlib.sha256((files / name).read_bytes()).hexdigest() != digest:
            sys.exit(f"{files / name} is not the file of torch {VERSION}")
    return files


def _from_debian() -> None:
    """With lists and a cache of our own: the machine's package lists stay as they are."""
    folder = CACHE / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"]
    mirrors = subprocess.run(targets, check=True, capture_output=True, text=True).stdout.split()
    if not mirrors:
        sys.exit(f"apt knows no archive of Debian's: name the `test` folder of torch {VERSION} with --files")
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb-src [signed-by={key}] {mirrors[0]} {SUITE} main\n")
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    subprocess.run(["apt-get", *options, "-q", "update"], check=True, cwd=folder)
    source = ["apt-get", *options, "-q", "source", "--download-only", "--only-source", "pytorch"]
    subprocess.run(source, check=True, cwd=folder)
    (archive,) = folder.glob("pytorch_*.orig.tar.*")
    missing = set(FILES)
    with tarfile.open(archive) as tar:
        for member in tar:
            parent, name = Path(member.name).parent.name, Path(member.name).name
            if parent == "test" and name in missing:
                file = tar.extractfile(member)
                assert file is not None
                (CACHE / name).write_bytes(file.read())
                missing.remove(name)
            if not missing:
                break
    if missing:
        sys.exit(f"{archive.name} has no {', '.join(sorted(missing))}")


def prepare(files: Path) -> Path:
    """The folder that the tests run in: the files without their guards, and what starts ullage."""
    folder = CACHE / "run"
    (folder / "site").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        text = (files / name).read_text()
        (folder / name).write_text(_GUARD.sub("", text) if name == "test_dataloader.py" else text)
    (folder / "site" / "sitecustomize.py").write_text(_SITE)
    for old in folder.glob("*.log"):
        old.unlink()
    return folder


def compare(name: str, arguments: argparse.Namespace, folder: Path) -> tuple[int, int]:
    """Runs one file both ways; how many tests passed without, and how many of them failed with ullage."""
    both = []
    for with_ullage in (False, True):
        both.append(Run(arguments.python, folder, name, with_ullage, arguments.timeout, arguments.fast))
    without, with_ = both
    names = [test for test in without.names() if arguments.only in test]
    if not names:
        return 0, 0
    for run in both:
        run.run(names)
        print(f"{run.label}: {run.seconds:.0f} s, {run.queues} queues of ullage's{run.share()}", flush=True)
    if name == "test_dataloader.py" and not arguments.only and not with_.queues:
        sys.exit("no queue of ullage's was made: the run says nothing")
    again = [test for test in names if without.outcomes[test][0] != with_.outcomes[test][0]]
    first = {test: (without.outcomes[test], with_.outcomes[test]) for test in again}
    for run in both:
        # Once more, alone: some of torch's tests depend on time, and the machine may be busy.
        for test in again:
            run.run([test])
    print(f"\n{name}: {len(names)} tests")
    for run in both:
        counts = Counter(outcome for outcome, _ in run.outcomes.values())
        print(f"  {run.label.split('.')[1]:8}", ", ".join(f"{counts[one]} {one}" for one in sorted(counts)))
    passed = failed = 0
    for test in names:
        before, after = without.outcomes[test], with_.outcomes[test]
        if before[0] in PASSED:
            passed += after[0] in PASSED
            failed += after[0] not in PASSED
        if before[0] != after[0]:
            print(f"  DIFFERS {test}\n    without: {_words(before)}\n    with:    {_words(after)}")
        elif test in first:
            words = [_words(outcome) for outcome in first[test]]
            print(f"  differed once {test}\n    without: {words[0]}\n    with:    {words[1]}")
    neither = [test for test in names if without.outcomes[test][0] not in (*PASSED, "skipped")]
    if neither:
        print("  do not pass without ullage either:")
        for test in neither:
            print(f"    {test.partition('.')[2]}: {_words(without.outcomes[test])[:120]}")
    return passed, failed


def _words(outcome: tuple[str, str]) -> str:
    return ": ".join(filter(None, (outcome[0], outcome[1].strip().split("\n")[0])))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch and ullage")
    parser.add_argument("--files", type=Path, help=f"folder with the test files of torch {VERSION}")
    parser.add_argument("--only", default="", help="only tests whose name has this text")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one test")
    parser.add_argument("--fast", action="store_true", help="without the tests that torch calls slow")
    arguments = parser.parse_args()
    # Not resolved: a virtual environment's Python is a link.
    arguments.python = os.path.abspath(arguments.python)
    asked = [arguments.python, "-c", "import torch, ullage; print(torch.__version__)"]
    version = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    if version.partition("+")[0] != VERSION:
        sys.exit(f"the tests are those of torch {VERSION}, and {arguments.python} has {version}")
    folder = prepare(fetch(arguments.files))
    passed = failed = 0
    for name in FILES:
        one = compare(name, arguments, folder)
        passed, failed = passed + one[0], failed + one[1]
    print(f"\n{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-process"]:
        run_tests(*sys.argv[2:5])
    else:
        main()
