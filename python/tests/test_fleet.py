"""`ullage.fleet.row`: one recording as a dict, by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ullage
import ullage.fleet


def record(folder: Path, code: str) -> None:
    command = [ullage.find_binary(), "run", "-q", "--record", str(folder), "--", sys.executable, "-c", code]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=False)


def test_a_recording_is_one_row(tmp_path: Path) -> None:
    folder = tmp_path / "job=7" / "node=a" / "rank=3" / "attempt=0"
    record(folder, "raise KeyError('labels')")
    row = ullage.fleet.row(folder)
    assert (row["job"], row["node"], row["rank"], row["attempt"]) == ("7", "a", 3, 0)
    assert (row["outcome"], row["code"], row["failure"]) == ("exit", 1, "own")
    assert "KeyError" in row["failure_sentence"]
    assert row == ullage.fleet.answer(tmp_path)["rows"][0]


def test_a_row_needs_no_verdict_file(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    record(folder, "raise SystemExit(3)")
    with_file = ullage.fleet.row(folder)
    (folder / "verdict.json").unlink()
    assert ullage.fleet.row(folder) == with_file


def test_none_and_several_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ullage.Error, match="no recordings"):
        ullage.fleet.row(tmp_path)
    record(tmp_path / "a", "pass")
    record(tmp_path / "b", "pass")
    with pytest.raises(ullage.Error, match="holds 2 recordings"):
        ullage.fleet.row(tmp_path)


def test_importing_it_loads_no_torch() -> None:
    code = "import sys, ullage.fleet, json; print(json.dumps([m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
