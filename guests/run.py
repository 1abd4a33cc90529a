#!/usr/bin/env python3
"""Boots small guests under qemu's software emulation and runs the cases that would hurt the machine itself.

    guests/run.py --kernel 6.1 --ullage target/release/ullage [--only WORD...] [--fixtures]

Prints a table and `N passed, M failed`; exit status 1 where a case failed, 2 where a guest could not be made.
guests/README.md says what the guests are made of. Only the standard library is needed.
"""

import argparse
import base64
import hashlib
import json
import os
import selectors
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".guest"
INSIDE = Path(__file__).resolve().parent / "inside"
BUSYBOX = Path("/usr/bin/busybox")


class GuestError(Exception):
    """A guest could not be made or did not speak."""


# --- the initramfs: newc archives, one after the other, as Documentation/driver-api/early-userspace says


class Archive:
    """A cpio archive in newc format. Written here because no file system or root right is needed for it."""

    def __init__(self):
        self.parts = []
        self.serial = 0
        self.folders = set()

    def add(self, name, mode, data=b"", device=(0, 0)):
        name = name.strip("/")
        parent = os.path.dirname(name)
        if parent and parent not in self.folders:
            self.folders.add(parent)
            self.add(parent, stat.S_IFDIR | 0o755)
        self.serial += 1
        fields = (self.serial, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.parts += [header, b"\0" * (-len(header) % 4), data, b"\0" * (-len(data) % 4)]

    def file(self, name, path, executable=None):
        mode = 0o755 if (os.access(path, os.X_OK) if executable is None else executable) else 0o644
        self.add(name, stat.S_IFREG | mode, Path(path).read_bytes())

    def link(self, name, target):
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def tree(self, folder, under=""):
        for path in sorted(Path(folder).rglob("*")):
            name = f"{under}/{path.relative_to(folder)}"
            if "__pycache__" in name:
                continue
            if path.is_symlink():
                self.link(name, os.readlink(path))
            elif path.is_file():
                self.file(name, path)

    def bytes(self):
        self.add("TRAILER!!!", 0)
        data = b"".join(self.parts)
        return data + b"\0" * (-len(data) % 512)


def user_space():
    """The part that does not change: Debian's Python, libc, busybox, devices. Kept in .guest/."""
    packages = (CACHE / "user.packages").read_bytes() + Path(__file__).read_bytes()
    path = CACHE / f"user-{hashlib.sha256(packages).hexdigest()[:12]}.cpio"
    if not path.exists():
        for old in CACHE.glob("user-*.cpio"):
            old.unlink()
        archive = Archive()
        archive.tree(CACHE / "user")
        archive.file("bin/busybox", BUSYBOX, executable=True)
        archive.link("bin/sh", "busybox")
        archive.link("usr/bin/python3", "python3.11")
        for folder in ("proc", "sys", "dev", "tmp", "root", "runs", "etc"):
            archive.add(folder, stat.S_IFDIR | 0o755)
        archive.add(
            "etc/passwd", stat.S_IFREG | 0o644, b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n"
        )
        archive.add("etc/group", stat.S_IFREG | 0o644, b"root:x:0:\nuser:x:1000:\n")
        archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        archive.add("dev/null", stat.S_IFCHR | 0o666, device=(1, 3))
        temporary = path.with_suffix(".new")
        temporary.write_bytes(archive.bytes())
        temporary.rename(path)
    return path.read_bytes()


def stripped(binary):
    """The binary without its symbols: the archive is unpacked into the guest's memory."""
    target = CACHE / "ullage-stripped"
    strip = shutil.which("strip")
    if strip is None:
        return Path(binary)
    subprocess.run([strip, "-o", target, binary], check=True)
    return target


def initramfs(ullage, only, modules, into):
    archive = Archive()
    archive.file("init", INSIDE / "init", executable=True)
    archive.tree(INSIDE, "guest")
    archive.tree(ROOT / "scenarios", "guest/scenarios")
    if ullage:
        archive.file("usr/bin/ullage", stripped(ullage), executable=True)
    settings = json.dumps({"only": only, "modules": modules}).encode()
    archive.add("guest/settings.json", stat.S_IFREG | 0o644, settings)
    with open(into, "wb") as file:
        file.write(user_space())
        file.write(archive.bytes())


# --- one boot


def boot(kernel, archive, memory, cpus, timeout, console, show):
    """Boots, yields what the guest says on its second serial port, and always ends the guest."""
    command = [
        "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cpus), "-m", str(memory),
        "-kernel", str(CACHE / "kernels" / kernel / "vmlinuz"), "-initrd", str(archive),
        "-append", "console=ttyS0 rdinit=/init panic=-1 mitigations=off nokaslr random.trust_cpu=on loglevel=6",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none", "-nic", "none",
        "-serial", f"file:{console}", "-serial", "stdio",
    ]  # fmt: skip
    started = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        selector = selectors.DefaultSelector()
        selector.register(process.stdout, selectors.EVENT_READ)
        pending = b""
        while True:
            left = timeout - (time.monotonic() - started)
            if left <= 0:
                raise GuestError(f"the guest did not end within {timeout} s; its console: {console}")
            if not selector.select(left):
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                marker = line.find(b"@ullage ")
                if marker >= 0:
                    yield json.loads(line[marker + 8 :])
                elif show and line.strip():
                    print("   guest:", line.decode(errors="replace").rstrip())
        process.wait(10)
        if process.returncode:
            raise GuestError(
                f"qemu ended with {process.returncode}: {process.stderr.read().decode(errors='replace')[-400:]}"
            )
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


FIXTURE_README = """# Linux {release}: {label}

Captured in a guest without swap ({memory} MiB of memory, cgroup v2) by the case "{case}" of guests/inside,
right after it ran, with

    guests/run.py --kernel {kernel} --fixtures

`dmesg` holds what the kernel logged during the case; `proc/` and `sys/` are the files at its end, the
numbered folder being the job's main process. Files that this kernel does not have are absent.
"""


def save_artifacts(kernel, result, fixtures, log, about):
    """Files that a case brought along: to the log folder, and with --fixtures those meant for fixtures/hosts."""
    artifacts = result.pop("artifacts", {})
    for label in {name.split("/")[1] for name in artifacts if name.startswith("fixture/")} if fixtures else ():
        # Numbered folders have another pid each time.
        shutil.rmtree(ROOT / "fixtures" / "hosts" / f"{kernel}-{label}", ignore_errors=True)
    for name, content in artifacts.items():
        data = base64.b64decode(content["base64"]) if isinstance(content, dict) else str(content).encode()
        if name.startswith("fixture/"):
            if not fixtures or not data:
                continue
            folder, _, rest = name[len("fixture/") :].partition("/")
            path = ROOT / "fixtures" / "hosts" / f"{kernel}-{folder}" / rest
            readme = ROOT / "fixtures" / "hosts" / f"{kernel}-{folder}" / "README.md"
            readme.parent.mkdir(parents=True, exist_ok=True)
            readme.write_text(FIXTURE_README.format(label=folder, kernel=kernel, case=result["case"], **about))
        else:
            path = log / result["case"] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def run_kernel(kernel, arguments):
    """All cases on one kernel: a list of (case, seconds, wrong checks, right checks)."""
    log = CACHE / "logs" / kernel
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir(parents=True)
    archive = log / "initramfs.cpio"
    modules = ["capture"] if arguments.fixtures else []
    initramfs(arguments.ullage, arguments.only, modules + arguments.modules, archive)
    print(f"kernel {kernel}: initramfs {archive.stat().st_size >> 20} MiB, {arguments.memory} MiB of memory")
    results, expected, begun = {}, None, time.monotonic()
    failure, about = None, {}
    try:
        for said in boot(
            kernel, archive, arguments.memory, arguments.cpus, arguments.timeout, log / "console.log", arguments.verbose
        ):
            if "start" in said:
                expected = said["start"]
                about = {"release": said["kernel"], "memory": arguments.memory}
                up, skipped = time.monotonic() - begun, ", ".join(said["skipped"])
                print(f"  {said['kernel']}, up after {up:.0f} s, {len(expected)} cases")
                if skipped:
                    print(f"  not run without --ullage: {skipped}")
            elif "case" in said:
                save_artifacts(kernel, said, arguments.fixtures, log, about)
                results[said["case"]] = said
                show(said, arguments.verbose)
    except GuestError as error:
        failure = str(error)
    archive.unlink()
    rows = []
    for name in expected or []:
        said = results.get(name)
        if said is None:
            print(f"  FAILED {name}: the guest ended before this case was done; console: {log / 'console.log'}")
            rows.append((name, False))
        else:
            rows.append((name, bool(said["checks"]) and all(check["ok"] for check in said["checks"])))
    if expected is None:
        failure = failure or f"the guest never spoke; its console: {log / 'console.log'}"
    elif not expected:
        failure = "no case has this name"
    print(f"  kernel {kernel}: {time.monotonic() - begun:.0f} s" + (f"; {failure}" if failure else ""))
    return rows, failure


def show(said, verbose):
    wrong = [check for check in said["checks"] if not check["ok"]]
    right = len(said["checks"]) - len(wrong)
    word = "FAILED" if wrong or not right else "passed"
    print(f"  {word} {said['case']}: {right} of {len(said['checks'])} checks, {said['seconds']:.0f} s", flush=True)
    for check in said["checks"] if verbose else wrong:
        mark = "ok " if check["ok"] else "NOT"
        print(f"      {mark} {check['what']}" + (f": {check['detail']}" if check["detail"] else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kernel", action="append", choices=["5.10", "6.1", "6.12"], help="may be given more than once (default: 6.1)"
    )
    parser.add_argument(
        "--ullage", type=Path, help="the ullage binary; without it only the guest itself and the faults are proven"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="cases whose name contains a WORD")
    parser.add_argument("--memory", type=int, default=768, help="of the guest, MiB")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=400, help="seconds for one kernel, boot included")
    parser.add_argument("--fixtures", action="store_true", help="also capture fixtures/hosts/KERNEL-CASE/")
    parser.add_argument("--verbose", action="store_true", help="show the right checks too")
    arguments = parser.parse_args()
    arguments.modules = ["cases_scenarios", "cases_faults", "cases_processes"]
    kernels = arguments.kernel or ["6.1"]
    if arguments.ullage and not os.access(arguments.ullage, os.X_OK):
        parser.error(f"{arguments.ullage} is not an executable; build it: cargo build --release -p ullage-cli")
    fetched = subprocess.run([ROOT / "guests" / "fetch", *kernels], stdout=sys.stderr)
    if fetched.returncode:
        print("guests/fetch could not get what the guests need; what it said is above", file=sys.stderr)
        return 2
    rows, failures = [], 0
    for kernel in kernels:
        done, failure = run_kernel(kernel, arguments)
        rows += [(kernel, *row) for row in done]
        failures += failure is not None and all(ok for _, ok in done)
    print("\nkernel  result  case")
    for kernel, name, ok in rows:
        print(f"{kernel:<7} {'passed' if ok else 'FAILED':<7} {name}")
    passed = sum(ok for *_, ok in rows)
    failed = len(rows) - passed + failures
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
