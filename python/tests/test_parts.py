"""`make test` goes on after a part that failed, and says at the end what failed."""

import pathlib
import subprocess
import sys

PARTS = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "parts.py"

MAKEFILE = """
cargo: ; @echo "test result: ok. 5 passed; 0 failed; 0 ignored"; echo "test result: FAILED. 1 passed; 2 failed"; exit 1
pytest: ; @echo "== 6 failed, 813 passed, 2 skipped, 1 error in 800.00s (0:13:20) =="
own: quick slow
quick: ; @echo "4 passed, 1 failed, 3 skipped"; exit 1
slow: ; @echo "the job that passed 3 passed"; echo "2 passed, 0 failed"
"""


def test_every_part_runs_and_is_counted(tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, str(PARTS), "make", "cargo", "pytest+own"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines()[-4:]]
    assert rows[0][:6] == "cargo FAILED 6 passed 2 failed".split()
    assert rows[1][:6] == "pytest ok 813 passed 7 failed".split()
    assert rows[2][:6] == "own FAILED 6 passed 1 failed".split()
    assert " ".join(rows[3][:5]) == "1 of 3 parts passed"
    # What runs beside another part is not mixed into its output.
    assert done.stdout.index("13:20) ==") < done.stdout.index("== own") < done.stdout.index("3 skipped")
