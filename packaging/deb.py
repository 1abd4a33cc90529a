#!/usr/bin/env python3
"""Builds the Debian package into dist/: the command, its manual pages, completions and licences, with cargo-deb.

    packaging/deb.py [--check]

The command is linked against glibc 2.28, as in the wheels. The package is unpacked, asked for its version, installed
into a folder and purged again, and lintian looks at it where there is a lintian. `--check` checks the package in dist/,
and builds nothing.
"""

import argparse
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import licenses
import wheels

ROOT = wheels.ROOT
STAGE = ROOT / "target" / "deb"
CARGO_DEB = "3.8.0"


def cargo(*words, **environment):
    command = os.environ.get("CARGO") or "cargo"
    subprocess.run([command, *words], cwd=ROOT, check=True, env={**os.environ, **environment})


def command(bin):
    """The command as the wheels hold it: for glibc 2.28, stripped."""
    words = ["build", "--profile", "dist", "--locked", "-p", "ullage-cli", "--bin", "ullage", "--target", wheels.TARGET]
    environment = wheels.environment(bin)
    subprocess.run([environment["CARGO"], *words], cwd=ROOT, check=True, env=environment)
    return Path(environment["CARGO_TARGET_DIR"]) / wheels.TARGET / "dist" / "ullage"


def changelog(version):
    """Debian's form of the one entry that there is; CHANGELOG.md is the one that people read."""
    when = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(int(wheels.committed())))
    who = "The ullage contributors <ullage@users.noreply.github.com>"
    return f"ullage ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {who}  {when}\n"


def build():
    bin = wheels.tools()
    shutil.rmtree(STAGE / "files", ignore_errors=True)
    files = STAGE / "files"
    files.mkdir(parents=True)
    shutil.copy2(command(bin), files / "ullage")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(wheels.committed())))
    cargo("run", "-q", "--release", "-p", "ullage-cli", "--example", "pages", "--", str(files / "share"), date)
    (files / "changelog").write_text(changelog(wheels.version()))
    licenses.write(files / "crates")
    with open(files / "crates.gz", "wb") as packed:  # no name and no time in it
        packed.write(gzip.compress((files / "crates").read_bytes(), mtime=0))
    tool = STAGE / "tools" / "bin" / "cargo-deb"
    if not tool.exists():
        cargo("install", "-q", "--locked", "--root", str(STAGE / "tools"), f"cargo-deb@{CARGO_DEB}")
    # cargo-deb asks cargo where the target folder is.
    words = ["-p", "ullage-cli", "--no-build", "--no-strip", "--target", wheels.TARGET, "-o", str(wheels.DIST) + "/"]
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "SOURCE_DATE_EPOCH": wheels.committed()}
    subprocess.run([str(tool), "deb", *words], cwd=ROOT, check=True, env=environment)


def wrong(package):
    """What is not as promised of the package, one sentence each."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(["dpkg-deb", "-x", str(package), folder], check=True)
        share = root / "usr" / "share"
        wanted = [
            share / "man" / "man1" / "ullage.1.gz",
            share / "man" / "man1" / "ullage-run.1.gz",
            share / "bash-completion" / "completions" / "ullage",
            share / "zsh" / "vendor-completions" / "_ullage",
            share / "fish" / "vendor_completions.d" / "ullage.fish",
            share / "doc" / "ullage" / "copyright",
            share / "doc" / "ullage" / "crates.gz",
        ]
        problems += [f"{file.relative_to(root)} is not in it" for file in wanted if not file.exists()]
        said = subprocess.run([root / "usr/bin/ullage", "--version"], capture_output=True, text=True, check=False)
        if said.returncode != 0 or wheels.version() not in said.stdout:
            problems.append(f"its command says {said.stdout + said.stderr!r}")
        needs = re.findall(rb"GLIBC_(\d+)\.(\d+)", (root / "usr/bin/ullage").read_bytes())
        newest = max(tuple(map(int, one)) for one in needs)
        depends = subprocess.run(["dpkg-deb", "-f", str(package), "Depends"], capture_output=True, text=True, check=True)
        if depends.stdout.strip() != f"libc6 (>= {newest[0]}.{newest[1]})":
            problems.append(f"it depends on {depends.stdout.strip()}, and its command needs glibc {newest}")
    problems += left_behind(package)
    if shutil.which("lintian"):
        lintian = ["lintian", "--fail-on", "error", str(package)]
        said = subprocess.run(lintian, capture_output=True, text=True, check=False)
        problems += [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("E:")]
        if said.returncode not in (0, 2):
            problems.append(f"lintian ended with {said.returncode}: {said.stderr.strip()[:300]}")
    else:
        print("lintian is not installed: it did not look at the package")
    return problems


def left_behind(package):
    """What remains after the package was installed and purged, in a root of its own with its own data of dpkg."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "var" / "lib" / "dpkg"
        for part in ("info", "updates"):
            (data / part).mkdir(parents=True)
        for part in ("status", "available"):
            (data / part).touch()
        dpkg = ["dpkg", f"--root={folder}", "--force-depends", "--force-not-root", f"--log={folder}/var/log"]
        before = {path for path in glob.glob(f"{folder}/usr/**", recursive=True)}
        for step in (["--install", str(package)], ["--purge", "ullage"]):
            done = subprocess.run([*dpkg, *step], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return [f"dpkg {step[0]}: {' '.join(done.stderr.split())[:300]}"]
            if step[0] == "--install" and not (Path(folder) / "usr/bin/ullage").exists():
                return ["dpkg installed no /usr/bin/ullage"]
        left = {path for path in glob.glob(f"{folder}/usr/**", recursive=True)} - before
        return [f"purge leaves {', '.join(sorted(left))}"] if left - {f"{folder}/usr", f"{folder}/usr/"} else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="build nothing")
    args = parser.parse_args()
    wheels.DIST.mkdir(exist_ok=True)
    if not args.check:
        for old in wheels.DIST.glob("ullage_*.deb"):
            old.unlink()
        build()
    packages, failed = sorted(wheels.DIST.glob("ullage_*.deb")), 0
    for package in packages:
        problems = wrong(package)
        failed += bool(problems)
        print(f"{'ok' if not problems else 'WRONG':6} {package.name} {package.stat().st_size / 1e6:.2f} MB")
        for problem in problems:
            print(f"       {problem}")
    print(f"{len(packages) - failed} passed, {failed} failed")
    return 0 if packages and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
