"""The guests' initramfs: Debian's Python, busybox, ullage, its tests, the cases. README.md says what is in it."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".guest"
INSIDE = Path(__file__).resolve().parent / "inside"
BUSYBOX = Path("/usr/bin/busybox")


class Archive:
    """A cpio archive in newc format (Documentation/driver-api/early-userspace). Needs no file system and no right."""

    def __init__(self):
        self.parts = []
        self.serial = 0
        self.folders = set()

    def add(self, name, mode, data=b"", device=(0, 0)):
        name = name.strip("/")
        parent = os.path.dirname(name)
        if parent and parent not in self.folders:
            self.add(parent, stat.S_IFDIR | 0o755)
        if stat.S_ISDIR(mode):
            if name in self.folders:
                return
            self.folders.add(name)
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
    target = CACHE / f"{Path(binary).name}-stripped"
    strip = shutil.which("strip")
    if strip is None:
        return Path(binary)
    subprocess.run([strip, "-o", target, binary], check=True)
    return target


def initramfs(ullage, tests, settings, into):
    """`tests`: (name, binary, package's folder) of Rust test programs; they find fixtures/ where cargo built them."""
    archive = Archive()
    archive.file("init", INSIDE / "init", executable=True)
    archive.tree(INSIDE, "guest")
    archive.file("guest/bounds.py", ROOT / "benches" / "bounds.py")
    archive.file("guest/jobs/prober.py", ROOT / "benches" / "prober.py")
    archive.tree(ROOT / "scenarios", "guest/scenarios")
    for scenario in sorted((ROOT / "crates/observe/diagnosis/causes").glob("*/scenario")):
        archive.tree(scenario, f"guest/scenarios/{scenario.parent.name}")
    if ullage:
        archive.file("usr/bin/ullage", stripped(ullage), executable=True)
    for name, binary, package in tests:
        archive.file(f"guest/tests/{name}", stripped(binary), executable=True)
        archive.add(str(package), stat.S_IFDIR | 0o755)
    if tests:
        archive.tree(ROOT / "fixtures", str(ROOT / "fixtures"))
    about = {"tests": {name: str(package) for name, _, package in tests}, **settings}
    archive.add("guest/settings.json", stat.S_IFREG | 0o644, json.dumps(about).encode())
    with open(into, "wb") as file:
        file.write(user_space())
        file.write(archive.bytes())
