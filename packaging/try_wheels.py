#!/usr/bin/env python3
"""Installs each wheel of dist/ in a venv of its CPython, and runs the crash of the README, plainly and with `--fix`.

    packaging/try_wheels.py [--only 3.11,3.12] [--no-torch]

Timed is what a user waits for who has torch: from `pip install` of the wheel to the first verdict. Without torch
(`--no-torch`, or where it has no wheel for that CPython), the command, `explain` and `import ullage` are tried. The
venvs stay in target/wheels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import wheels

WITHIN_S = 30  # from an environment with torch to the first verdict
IMPORT_MS = 5
MESSAGE = "RuntimeError: unable to mmap 320 bytes from file </torch_1_2_3>: Cannot allocate memory (12)\n"


def call(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def venv_of(version, python, torch):
    """A venv with torch, where there is one for this CPython; and whether it has it."""
    folder = wheels.WORK / f"try{version}"
    if not (folder / "bin" / "pip").exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = folder / "bin" / "pip"
    if torch and call(pip, "show", "torch").returncode != 0:
        call(pip, "install", "-q", "torch", "numpy")
    call(pip, "uninstall", "-q", "-y", "ullage")
    return folder / "bin", torch and call(pip, "show", "torch").returncode == 0


def import_ms(python):
    """What `import ullage` takes more than nothing does, in the middle of 21 starts each."""
    times = {"pass": [], "import ullage": []}
    for _ in range(21):
        for code, took in times.items():
            begin = time.perf_counter()
            call(python, "-c", code)
            took.append(time.perf_counter() - begin)
    return 1000 * (statistics.median(times["import ullage"]) - statistics.median(times["pass"]))


def tried(bin, wheel, has_torch, home):
    """What went wrong, one sentence each; and what was measured."""
    problems, begin = [], time.monotonic()
    installed = call(bin / "pip", "install", "-q", "--no-deps", wheel)
    if installed.returncode != 0:
        return [f"pip: {installed.stderr.strip()[-300:]}"], ""
    environment = {**os.environ, "ULLAGE_HOME": str(home)}
    if call(bin / "ullage", "--version").returncode != 0:
        problems.append("ullage --version fails")
    said = call(bin / "ullage", "explain", "-", input=MESSAGE, env=environment)
    if "max-map-count-exhausted" not in said.stdout:
        problems.append(f"explain says {said.stdout[:200]!r}")
    measured = f"installed in {time.monotonic() - begin:.1f} s"
    if has_torch:
        crash = [bin / "python", wheels.ROOT / "examples" / "crash.py"]
        file = home / "verdict.json"
        plain = call(bin / "ullage", "run", "--json", file, "--", *crash, env=environment)
        measured += f", first verdict after {time.monotonic() - begin:.1f} s"
        if time.monotonic() - begin > WITHIN_S:
            problems.append(f"the first verdict came later than {WITHIN_S} s")
        findings = json.loads(file.read_text())["findings"] if file.exists() else []
        if plain.returncode == 0 or [one["cause"] for one in findings[:1]] != ["max-map-count-exhausted"]:
            problems.append(f"the crash: status {plain.returncode}, {[one['cause'] for one in findings]}")
        fixed = call(bin / "ullage", "run", "--fix", "--", *crash, env=environment)
        if fixed.returncode != 0 or "trained on 70000 samples" not in fixed.stdout:
            problems.append(f"with --fix: status {fixed.returncode}: {fixed.stderr[-300:]}")
    took = import_ms(bin / "python")
    if took > IMPORT_MS:
        problems.append(f"import ullage takes {took:.1f} ms")
    return problems, f"{measured}, import {took:.1f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(wheels.VERSIONS), help="versions of CPython")
    parser.add_argument("--no-torch", action="store_true", help="try the command and the import alone")
    args = parser.parse_args()
    home, done, failed = wheels.WORK / "home", 0, 0
    home.mkdir(parents=True, exist_ok=True)
    for version, python in wheels.pythons(args.only.split(",")).items():
        tag = "cp" + version.replace(".", "")
        for wheel in wheels.DIST.glob(f"ullage-*-{tag}-*.whl"):
            bin, has_torch = venv_of(version, python, not args.no_torch)
            (home / "verdict.json").unlink(missing_ok=True)
            problems, measured = tried(bin, wheel, has_torch, home)
            done, failed = done + 1, failed + bool(problems)
            of = f"CPython {version}{'' if has_torch else ', no torch'}"
            print(f"{'ok' if not problems else 'WRONG':6} {of}: {measured}")
            for problem in problems:
                print(f"       {problem}", flush=True)
    print(f"{done - failed} of {done} wheels work")
    return 0 if done and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
