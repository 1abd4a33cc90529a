"""The first start runs what it needs side by side, says how far each is, and shows what failed."""

import io
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "packaging"))
import set_up


def prints(*lines, status=0):
    return [sys.executable, "-c", f"import sys; [print(line, end='\\r') for line in {lines!r}]; sys.exit({status})"]


def test_lines_of_cargo_and_pip_say_how_far_they_are():
    assert set_up.units("    Building [====>    ] 34/157: regex, syn\n") == "34 of 157 parts"
    assert set_up.units("   Compiling syn v2.0.119\n") is None
    assert (
        set_up.steps("  Downloading https://x.org/torch-2.13.0-cp311-linux.whl (888.1 MB)\n")
        == "downloading torch (888.1 MB)"
    )
    assert set_up.steps("Collecting filelock>=3.10 (from torch==2.13.0)\n") == "collecting filelock"
    assert set_up.steps("Installing collected packages: mpmath, torch\n") == "unpacks"
    assert set_up.steps("  note: nothing\n") is None


def test_two_jobs_run_beside_each_other_and_the_failed_one_is_shown(tmp_path):
    # Each waits at the other's end of a pipe: one after the other they would wait for ever.
    met = str(tmp_path / "met")
    os.mkfifo(met)
    reads = [sys.executable, "-c", f"open({met!r}).read(); print('3/4: x')"]
    writes = [sys.executable, "-c", f"open({met!r}, 'w').close()"]
    compiles = set_up.Job("compiling", [(reads, {})], set_up.units)
    refused = (prints("no room", status=3), {})
    fetches = set_up.Job("fetching", [(writes, {}), refused, (["/nonexistent"], {})], set_up.steps)
    out = io.StringIO()
    assert not set_up.watch([compiles, fetches], out)
    assert compiles.state == "3 of 4 parts" and not compiles.failed
    assert "compiling: done after" in out.getvalue() and "fetching: FAILED after" in out.getvalue()
    assert out.getvalue().endswith("== fetching\nno room\n")


def test_a_command_that_is_not_there_fails_and_is_named():
    job = set_up.Job("compiling", [(["/nonexistent/cargo"], {})], set_up.units)
    out = io.StringIO()
    assert not set_up.watch([job], out)
    assert "/nonexistent/cargo" in out.getvalue()
