#!/usr/bin/env python3
"""Boots small guests under qemu's software emulation and runs the cases that would hurt the machine itself.

    guests/run.py --kernel 6.1 --ullage target/release/ullage [--only WORD...] [--tests] [--fixtures]
    guests/run.py --here --fixtures

Prints a table and `N passed, M failed`; exit status 1 where a case failed, 2 where a guest could not be made.
guests/README.md says what the guests are made of. Only the standard library is needed.
"""

import argparse
import base64
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from initramfs import CACHE, INSIDE, ROOT, initramfs


class GuestError(Exception):
    """A guest could not be made or did not speak."""


# --- one boot

# Bytes of the disk that a guest may swap to.
SWAP = 512 << 20

# Where the machine is busy, the emulated timer comes late, and 5.10 gives up at boot: no_timer_check.
KERNEL = """
    console=ttyS0 rdinit=/init panic=-1 mitigations=off nokaslr random.trust_cpu=on loglevel=6 no_timer_check
""".strip()


def boot(kernel, archive, memory, cpus, timeout, console, show, parameters=""):
    """Boots, yields what the guest says on its second serial port, and always ends the guest."""
    # The only disk that these kernels know without a module. Unused but for cases that swap.
    disk = tempfile.NamedTemporaryFile(prefix="ullage-guest-swap-", dir="/var/tmp")
    disk.truncate(SWAP)
    command = [
        "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cpus), "-m", str(memory),
        "-kernel", str(CACHE / "kernels" / kernel / "vmlinuz"), "-initrd", str(archive),
        "-append", f"{KERNEL} {parameters}",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none", "-nic", "none",
        "-serial", f"file:{console}", "-serial", "stdio",
        "-drive", f"file={disk.name},if=none,id=swap,format=raw,cache=unsafe", "-device", "nvme,drive=swap,serial=swap",
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
            yield from said_in(lines, show)
        process.wait(10)
        if process.returncode:
            raise GuestError(
                f"qemu ended with {process.returncode}: {process.stderr.read().decode(errors='replace')[-400:]}"
            )
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        disk.close()


def said_in(lines, show):
    for line in lines:
        marker = line.find(b"@ullage ")
        if marker >= 0:
            yield json.loads(line[marker + 8 :])
        elif show and line.strip():
            print("   guest:", line.decode(errors="replace").rstrip())


def here(folder, settings, show):
    """The cases of `settings` on this machine itself: only what captures fixtures, which harms nothing."""
    shutil.copytree(INSIDE, folder / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "guest" / "settings.json").write_text(json.dumps({"tests": {}, **settings}))
    disk = tempfile.mkdtemp(prefix="ullage-fixture-", dir="/var/tmp")
    try:
        done = subprocess.run(
            ["/usr/bin/python3", folder / "guest" / "harness.py"],
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/root", "ULLAGE_FIXTURE_DISK": disk},
            cwd="/",
        )
    finally:
        shutil.rmtree(disk)
    yield from said_in(done.stdout.split(b"\n"), show)


# --- fixtures

FIXTURE_README = """# Linux {release}: {label}

Captured in {place}
by the case "{case}" of guests/inside, with

    guests/run.py {command} --fixtures

`dmesg` holds what the kernel logged during the case; `proc/` and `sys/` are the files at its end, the
numbered folders being the job's processes. `truth.json` says what the case did, and which facilities this kernel
offers; `pagemap.runs` holds the flags of `pagemap` without page frames, as `ADDRESS COUNT ENTRY`.

{absent}
"""


def readme(label, case, artifacts, about):
    absent = json.loads(artifacts.get(f"fixture/{label}/ABSENT", "null"))
    if absent:
        lines = ["Looked for and not seen:", ""] + [f"- `{name}`: {error}" for name, error in sorted(absent.items())]
    elif absent is None:
        lines = ["Files that this kernel does not have are absent."]
    else:
        lines = ["Everything that was looked for was seen."]
    return FIXTURE_README.format(label=label, case=case, absent="\n".join(lines), **about)


def save_artifacts(kernel, result, fixtures, log, about):
    """Files that a case brought along: to the log folder, and with --fixtures those meant for fixtures/hosts."""
    artifacts = {
        name: base64.b64decode(content["base64"]) if isinstance(content, dict) else str(content).encode()
        for name, content in result.pop("artifacts", {}).items()
    }
    labels = {name.split("/")[1] for name in artifacts if name.startswith("fixture/")} if fixtures else ()
    for label in labels:
        # Numbered folders have another pid each time.
        shutil.rmtree(ROOT / "fixtures" / "hosts" / f"{kernel}-{label}", ignore_errors=True)
    for name, data in artifacts.items():
        if name.startswith("fixture/"):
            label, _, rest = name[len("fixture/") :].partition("/")
            if not fixtures or not data or rest == "ABSENT":
                continue
            path = ROOT / "fixtures" / "hosts" / f"{kernel}-{label}" / rest
        else:
            path = log / result["case"] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for label in labels:
        text = readme(label, result["case"], artifacts, about)
        (ROOT / "fixtures" / "hosts" / f"{kernel}-{label}" / "README.md").write_text(text)


# --- the Rust tests


def built_tests(packages):
    """Compiles the tests of these packages; (name, binary, folder of the package) of each test program."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--no-run", "--release", "--message-format=json"]
    for package in packages:
        command += ["-p", package]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode:
        raise GuestError("cargo could not build the tests; what it said is above")
    found = []
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if said.get("reason") == "compiler-artifact" and said.get("executable") and said["profile"]["test"]:
            package = Path(said["manifest_path"]).parent
            name = f"{package.name}-{said['target']['name']}".replace("_", "-")
            found.append((name, Path(said["executable"]), package))
    return sorted(found)


# --- one kernel

MODULES = ["cases_scenarios", "cases_faults", "cases_processes"]
TESTED = """
    ullage-model ullage-kernel ullage-sampler ullage-recording ullage-diagnosis ullage-supervisor ullage-cli
    ullage-arena ullage-transport
""".split()


def has_v1(kernel):
    """Debian's kernels have cgroup v1 unless they say otherwise; the option is as young as 6.11."""
    config = CACHE / "kernels" / kernel / "config"
    return "# CONFIG_MEMCG_V1 is not set" not in config.read_text()


def boots(kernel, arguments):
    """What is booted for one kernel: (what it is called, modules of cases, kernel parameters, tests)."""
    modules = (["capture"] if arguments.fixtures else []) + MODULES
    tests = arguments.built if arguments.tests is not None else []
    yield kernel, modules + (["cases_tests"] if tests else []) + arguments.modules, "", tests
    if arguments.fixtures and has_v1(kernel):
        yield f"{kernel}, cgroup v1", ["capture_v1"], "ullage.cgroup=v1", []


def run_boot(kernel, name, modules, parameters, tests, arguments):
    """The cases of one boot: a list of (case, right or not), and what failed beside them."""
    log = CACHE / "logs" / name.replace(", ", "-").replace(" ", "-")
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir(parents=True)
    settings = {"only": arguments.only, "modules": modules}
    about = {
        "command": f"--kernel {kernel}",
        "place": f"a guest of {arguments.memory} MiB without swap and disk",
    }
    if kernel == "here":
        about = {
            "command": "--here",
            "place": "a machine with cgroup v1 beside an empty v2, as root; mounts below /mnt left out;",
        }
        said = here(Path(tempfile.mkdtemp(prefix="ullage-")), settings, arguments.verbose)
    else:
        archive = log / "initramfs.cpio"
        initramfs(arguments.ullage, tests, settings, archive)
        print(f"kernel {name}: initramfs {archive.stat().st_size >> 20} MiB, {arguments.memory} MiB of memory")
        said = boot(
            kernel, archive, arguments.memory, arguments.cpus, arguments.timeout, log / "console.log",
            arguments.verbose, parameters,
        )  # fmt: skip
    results, expected, begun, failure = {}, None, time.monotonic(), None
    try:
        for what in said:
            if "start" in what:
                expected = what["start"]
                about["release"] = what["kernel"]
                up, skipped = time.monotonic() - begun, ", ".join(what["skipped"])
                print(f"  {what['kernel']}, up after {up:.0f} s, {len(expected)} cases")
                if skipped:
                    print(f"  not run without --ullage: {skipped}")
            elif "case" in what:
                version = ".".join(about["release"].split(".")[:2])
                save_artifacts(version, what, arguments.fixtures, log, about)
                results[what["case"]] = what
                show(what, arguments.verbose)
    except GuestError as error:
        failure = str(error)
    rows = []
    for case in expected or []:
        what = results.get(case)
        if what is None:
            print(f"  FAILED {case}: the guest ended before this case was done; console: {log / 'console.log'}")
        rows.append((case, what is not None and bool(what["checks"]) and all(check["ok"] for check in what["checks"])))
    if expected is None:
        failure = failure or f"the guest never spoke; its console: {log / 'console.log'}"
    elif not expected and not arguments.only:
        failure = "no case has this name"
    print(f"  kernel {name}: {time.monotonic() - begun:.0f} s" + (f"; {failure}" if failure else ""))
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
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one boot")
    parser.add_argument("--fixtures", action="store_true", help="also capture fixtures/hosts/KERNEL-CASE/")
    parser.add_argument(
        "--tests", nargs="*", metavar="PACKAGE", help="also run the Rust tests of these packages inside"
    )
    parser.add_argument("--prober", action="store_true", help="also the prober of mmap and munmap, 4 minutes")
    parser.add_argument("--here", action="store_true", help="capture the fixtures of this machine, as root; no guest")
    parser.add_argument("--verbose", action="store_true", help="show the right checks too")
    arguments = parser.parse_args()
    arguments.modules = ["cases_prober"] if arguments.prober else []
    if arguments.here:
        arguments.ullage = None
        rows, failure = run_boot("here", "here", ["capture_v1"], "", [], arguments)
        return summary([("here", *row) for row in rows], failure is not None)
    kernels = arguments.kernel or ["6.1"]
    if arguments.ullage and not os.access(arguments.ullage, os.X_OK):
        parser.error(f"{arguments.ullage} is not an executable; build it: cargo build --release -p ullage-cli")
    fetched = subprocess.run([ROOT / "guests" / "fetch", *kernels], stdout=sys.stderr)
    if fetched.returncode:
        print("guests/fetch could not get what the guests need; what it said is above", file=sys.stderr)
        return 2
    if arguments.tests is not None:
        try:
            arguments.built = built_tests(arguments.tests or TESTED)
        except GuestError as error:
            print(error, file=sys.stderr)
            return 2
    rows, failures = [], 0
    for kernel in kernels:
        for name, modules, parameters, tests in boots(kernel, arguments):
            done, failure = run_boot(kernel, name, modules, parameters, tests, arguments)
            rows += [(name, *row) for row in done]
            failures += failure is not None and all(ok for _, ok in done)
    return summary(rows, failures)


def summary(rows, failures):
    print("\nkernel             result  case")
    for kernel, name, ok in rows:
        print(f"{kernel:<18} {'passed' if ok else 'FAILED':<7} {name}")
    passed = sum(ok for *_, ok in rows)
    failed = len(rows) - passed + failures
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
