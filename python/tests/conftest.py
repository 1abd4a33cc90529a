"""Which Pythons and which torch the tests find, and the count of what ran."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


@functools.cache
def pythons():
    """This Python and others of this machine: on PATH, of pyenv, and those named in $ULLAGE_TEST_PYTHONS."""
    candidates = [sys.executable, *os.environ.get("ULLAGE_TEST_PYTHONS", "").split(":")]
    candidates += [shutil.which(f"python3.{minor}") for minor in range(9, 15)]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates += sorted(str(path) for path in pyenv.glob("versions/3.*/bin/python"))
    found = {}
    for candidate in candidates:
        if not candidate:
            continue
        asked = subprocess.run(
            [candidate, "-c", "import sys; print(sys.implementation.name, *sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        name, _, version = asked.stdout.strip().partition(" ")
        if asked.returncode == 0 and name == "cpython":
            major, minor = map(int, version.split())
            if (major, minor) >= (3, 9):
                found.setdefault((major, minor), candidate)
    return found


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        found = pythons()
        metafunc.parametrize("python", list(found.values()), ids=[f"py{a}.{b}" for a, b in found])


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    ran = sum(len(stats.get(word, [])) for word in ("passed", "failed", "error"))
    versions = ", ".join(f"{a}.{b}" for a, b in pythons())
    terminalreporter.write_line(f"ran {ran} tests; Pythons: {versions}")


@pytest.fixture
def script(tmp_path):
    """Writes a program and gives its path."""

    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write
