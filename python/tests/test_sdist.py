"""Is everything that a build needs in the source archive? It is listed here, and nothing is built."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# With its notes in a folder of its own: a list of files of an earlier build would be taken for this one's.
MAKE = "from setuptools import setup; setup()"


def tracked(*folders: str) -> set:
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a clone of the repository")
    return set(listed.stdout.split("\n")) - {""}


def test_the_archive_holds_what_the_build_reads(tmp_path):
    pytest.importorskip("setuptools")
    notes = tmp_path / "notes"
    notes.mkdir()
    made = subprocess.run(
        [sys.executable, "-c", MAKE, "egg_info", f"--egg-base={notes}", "sdist", f"--dist-dir={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (archive,) = tmp_path.glob("ullage-*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    needed = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md"} | tracked(
        "crates", "python/agent", "python/native", "xtask"
    )
    needed |= tracked("python/ullage")
    assert needed - held == set()
    assert not [name for name in held if name.endswith((".so", ".pyc")) or os.path.basename(name) == "target"]
