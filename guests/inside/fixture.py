"""Files of the kernel as they are read at one moment, for fixtures/hosts, with what was looked for and not there.

Everything is taken as bytes. What the case itself did (limits, sizes, who wrote to which page) goes into truth.json,
so that a test compares with that and not with another reading.
"""

import ctypes
import errno
import fcntl
import json
import os
import struct
import time

OF_PROCESS = ("stat", "status", "maps", "smaps_rollup", "limits", "cgroup", "mountinfo", "cmdline", "comm")
OF_MACHINE = """
    meminfo vmstat stat mounts pressure/memory pressure/cpu pressure/io sysvipc/shm sys/vm/max_map_count
    sys/vm/overcommit_memory sys/vm/overcommit_ratio sys/kernel/pid_max sys/kernel/threads-max
    sys/kernel/osrelease sys/fs/file-nr
""".split()
GROUP_FILES = {
    "v2": """
        memory.current memory.max memory.high memory.peak memory.stat memory.events memory.events.local
        memory.oom.group memory.swap.current memory.swap.max memory.pressure pids.current pids.max pids.events
        cgroup.procs cgroup.controllers
    """.split(),
    "memory": """
        memory.usage_in_bytes memory.max_usage_in_bytes memory.limit_in_bytes memory.failcnt memory.oom_control
        memory.stat memory.kmem.usage_in_bytes memory.memsw.usage_in_bytes memory.memsw.limit_in_bytes
        memory.use_hierarchy cgroup.procs
    """.split(),
    "pids": "pids.current pids.max pids.events cgroup.procs".split(),
}
PAGE = 4096
# Who may not see page frames reads zeros in their place; for whoever may, they are left out.
FLAGS = ~((1 << 55) - 1) & (1 << 64) - 1


class Fixture:
    """One folder of fixtures/hosts in the making. `sees` reads in another process's place (a namespace)."""

    def __init__(self, artifacts, label):
        self.artifacts, self.label, self.absent = artifacts, label, {}

    def put(self, name, content):
        self.artifacts[f"fixture/{self.label}/{name}"] = content

    def take(self, path, name=None):
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            self.absent[(name or path).strip("/")] = errno.errorcode.get(error.errno, str(error.errno))
            return None
        if path.endswith(("/mountinfo", "/mounts")):
            # What a machine's owner mounts there is of no interest.
            content = b"".join(line for line in content.splitlines(keepends=True) if b" /mnt/" not in line)
        self.put((name or path).strip("/"), content)
        return content

    def machine(self, names=OF_MACHINE):
        for name in names:
            self.take(f"/proc/{name}")

    def process(self, pid, names=OF_PROCESS):
        for name in names:
            self.take(f"/proc/{pid}/{name}")

    def descriptors(self, pid):
        links = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            links[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        self.put(f"proc/{pid}/fd.links", "".join(f"{fd} {links[fd]}\n" for fd in sorted(links)))

    def group(self, kind, mount, path):
        """A group (`v2`, or a v1 controller) and every group above it up to the mount."""
        while True:
            top = path in ("", "/")
            for name in GROUP_FILES[kind]:
                file = f"{mount}{path.rstrip('/')}/{name}"
                # The top of v2 never has most of them, and the pids there are of no interest.
                if not top or (name != "cgroup.procs" and (kind != "v2" or os.path.exists(file))):
                    self.take(file)
            if top:
                return
            path = os.path.dirname(path)

    def pagemap(self, pid):
        """Flags of all pages as runs: `ADDRESS COUNT ENTRY`, in hexadecimal; runs without any flag are left out."""
        lines = []
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
            for line in maps:
                start, end = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
                if start >> 47:
                    continue  # [vsyscall]
                lines += runs(pagemap, start, end)
        self.put(f"proc/{pid}/pagemap.runs", "".join(lines))

    def shared_memory(self):
        """/dev/shm as a folder and as a file system."""
        lines = []
        for name in sorted(os.listdir("/dev/shm")):
            if name.startswith("sharing-"):
                about = os.stat(f"/dev/shm/{name}")
                lines.append(f"{name} inode {about.st_ino} size {about.st_size} blocks {about.st_blocks}\n")
        self.put("dev-shm.list", "".join(lines))

    def truth(self, **facts):
        facts["facilities"] = facilities()
        self.put("truth.json", json.dumps(facts, indent=1, sort_keys=True) + "\n")
        # Not a file of the folder: its README names these.
        self.put("ABSENT", json.dumps(self.absent))


def runs(pagemap, start, end):
    at, run = start, None
    while at < end:
        count = min((end - at) // PAGE, 65536)
        data = os.pread(pagemap.fileno(), count * 8, at // PAGE * 8)
        if not data:
            break
        for (entry,) in struct.iter_unpack("=Q", data):
            entry &= FLAGS
            if run and run[2] == entry:
                run[1] += 1
            else:
                yield from line_of(run)
                run = [at, 1, entry]
            at += PAGE
    yield from line_of(run)


def line_of(run):
    if run and run[2]:
        yield f"{run[0]:x} {run[1]:x} {run[2]:x}\n"


def ioctl_name(path, request, size):
    try:
        with open(path, "rb") as file:
            # Its first field is its size; whoever does not know the request never looks at it.
            fcntl.ioctl(file, request, bytearray(struct.pack("=Q", size) + bytes(size - 8)))
            return "yes"
    except OSError as error:
        # ENOTTY: no such request. Anything else: the kernel knew it, and refused these arguments.
        return "no" if error.errno == errno.ENOTTY else "yes"


def facilities():
    """What this kernel offers beside plain files, found by asking."""
    return {
        "PROCMAP_QUERY": ioctl_name("/proc/self/maps", 0xC0686611, 104),
        "PAGEMAP_SCAN": ioctl_name("/proc/self/pagemap", 0xC0606610, 96),
        "descriptors counted by stat of /proc/PID/fd": "yes" if os.stat("/proc/self/fd").st_size else "no",
    }


# Flags of mount(2): a bind mount; private, and so all below it.
BIND, PRIVATE = 0x1000, 0x44000


def unshare(*names):
    flags = {"mount": 0x20000, "cgroup": 0x2000000}
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(sum(flags[name] for name in names)):
        raise OSError(ctypes.get_errno(), "unshare")


def mount(source, target, kind, options="", flags=0):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount of {kind} on {target}")


def in_a_child(function):
    """Runs `function` in a forked process and returns what it returned: a dict of strings and bytes."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = {name: value if isinstance(value, str) else [value.hex()] for name, value in function().items()}
            with os.fdopen(theirs, "w") as out:
                json.dump(said, out)
            os._exit(0)
        except BaseException as error:  # whatever it was, it is told by the empty answer
            os.write(2, f"guest: in a child: {error!r}\n".encode())
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    if not text:
        raise OSError("the child said nothing")
    return {
        name: value if isinstance(value, str) else bytes.fromhex(value[0]) for name, value in json.loads(text).items()
    }


def wait_for(path, seconds=60):
    deadline = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.1)
