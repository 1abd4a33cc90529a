#!/usr/bin/env python3
"""Makes the seed corpus, fuzz/corpus/<entry>/*, out of the fixtures and of one recording.

    python3 fuzz/seed.py

Named by content, so that making it again changes nothing. Regressions are not made but kept: a file that once made an
entry fail goes to fuzz/regressions/<entry>/ by hand.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
LARGEST = 16 * 1024
MOST = 12  # seeds an entry
# Every line of a log meets a hundred patterns; a recording that is cut has lost its last tables.
SIZES = {"log": 2048, "recording-image": 65536}

# Which files seed which entry: the end of their path below a folder of fixtures.
FILES = {
    "process-stat": r"/proc/\d+/stat$|process/stat",
    "process-status": r"/proc/\d+/status$|process/status",
    "process-maps": r"/proc/\d+/maps$|process/maps",
    "process-limits": r"/proc/\d+/limits$|process/limits",
    "process-cgroup": r"/proc/\d+/cgroup$",
    "process-command-line": r"/proc/\d+/(cmdline|environ)$",
    "cgroup-v1": r"cgroup-v1/|memory\.(oom_control|limit_in_bytes)$",
    "cgroup-v2": r"memory\.(stat|events|max)$",
    "cgroup-procs": r"cgroup\.procs$",
    "host-meminfo": r"meminfo$",
    "host-vmstat": r"vmstat$",
    "host-pressure": r"pressure/memory$|memory\.pressure$",
    "host-stat": r"proc/stat$",
    "host-sysctl": r"proc/sys/",
    "host-mountinfo": r"mountinfo$",
    "host-kmsg": r"dmesg$",
    "log": r"dmesg$",
    "page": r"\.md$",
}

# What no fixture holds.
TEXTS = {
    "process-stat": [b"7 (a) b (c)) S 1 7 7 0 -1 4194304 98 0 0 0 1 2 0 0 20 0 4 0 150946 3133440 388"],
    "process-cgroup": [b"4:memory:/a/b\n3:pids:/a\n0::/x.slice/y\n", b"0::/../out (deleted)\n"],
    "process-links": [
        b"/dev/shm/torch_8372_1207_0 (deleted)\nsocket:[12345]\npipe:[678]\nanon_inode:[eventpoll]\n",
        b"mnt:[4026531832]\n/memfd:x (deleted)\n/torch_1_2_3\n/data/img.jpg",
    ],
    "process-command-line": [b"python\0train.py\0--lr\x000.1\0", b"RANK=3\0WORLD_SIZE=8\0", b""],
    "cgroup-v1": [b"9223372036854771712\n", b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"],
    "cgroup-v2": [b"max\n", b"1073741824\n", b"low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n"],
    "cgroup-procs": [b"1\n4711\n4712\n", b"0\n"],
    "host-stat": [b"cpu 1 2 3\nctxt 9\nbtime 1\nprocesses 8383\nprocs_running 1\n"],
    "host-sysctl": [b"65530\n", b"592\t0\t2466183\n", b"always [madvise] never\n", b"6.1.0-18-amd64", b"0-3,8\n"],
    "host-mountinfo": [
        b"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        b"36 31 0:33 /docker/x /sys/fs/cgroup rw master:1 propagate_from:2 - cgroup2 a\\040b rw\n"
    ],
    "host-sysvipc": [
        b"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime"
        b"      dtime      ctime                   rss                  swap\n      4660          5   600"
        b"                 65536  4711  4712      2  1000  1000  1000  1000 1795233312          0 1795233300"
        b"                  8192                  4096\n"
    ],
    "host-kmsg": [
        b"6,1234,567890,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
        b"task_memcg=/a,task=python,pid=123,uid=0\n3,1235,567891,-;Memory cgroup out of memory: Killed process 123 "
        b"(python) total-vm:9kB, anon-rss:8kB, file-rss:7kB, shmem-rss:6kB, UID:0 pgtables:4kB oom_score_adj:0\n",
        b"4,1236,567892,-;cgroup: fork rejected by pids controller in /x\n",
    ],
    "size": [b"16GiB", b"500M", b"1073741824", b"1.5 TB", b"250ms", b"1s", b"2 min", b"-1", b"1e3"],
    "agent-message": [
        b'{"kind":"hello","python":"3.11.7","forked":true}',
        b'{"kind":"process","name":"Process-1","target":"torch.utils.data._utils.worker._worker_loop","worker":0,'
        b'"start_method":"forkserver"}',
        b'{"kind":"loader","workers":4,"start_method":"fork","sharing_strategy":"file_system","batch_size":32,'
        b'"pin_memory":true,"dataset":"__main__.Tensors","dataset_len":70000}',
        b'{"kind":"exception","left":"process","name":"Process-1","type_name":"RuntimeError","text":"unable to mmap '
        b'320 bytes","errno":12,"stack":["a.py:1 f"],"chain":["OSError: x"],"counts":{"mappings":65530,"max_map_count"'
        b':65530,"fds":40},"torch":"2.13.0","cuda_initialized":false}',
        b'{"kind":"bye","figures":{"gc.collections":3.0,"arena":1e9}}',
    ],
    "run-json": [b"{}", b"[", b'{"format":1}'],
    "page": [b"# Title\n\nText `code` **bold**\n- one\n- two\n\n```sh\nls\n```\n"],
    "log": [b"", b'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n'],
}


def examples():
    """The examples of the known messages, as lines of one log."""
    folder = ROOT / "crates/observe/diagnosis"
    files = [*sorted(folder.glob("causes/*/cause.yaml")), folder / "unrelated/messages.yaml"]
    text = "".join(file.read_text() for file in files)
    lines = re.findall(r"^  example: '(.*)'$", text, re.M)
    return "\n".join(line.replace("''", "'") for line in lines).encode()


def recording():
    """Seeds that only the writer of recordings can make: hexadecimal by entry."""
    command = ["cargo", "run", "-q", "-p", "ullage-fuzzing", "--example", "recording_seeds"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for line in output.splitlines():
        seed = json.loads(line)
        yield seed["entry"], bytes.fromhex(seed["hex"])


def main():
    seeds = {}

    def add(entry, content):
        content = content[: SIZES.get(entry, LARGEST)]
        if len(seeds.setdefault(entry, {})) < MOST:
            seeds[entry][hashlib.sha256(content).hexdigest()[:16]] = content

    for entry, texts in TEXTS.items():
        for text in texts:
            add(entry, text)
    messages = examples()
    for at in range(0, len(messages), 2048):
        add("log", messages[at:])
    for entry, content in recording():
        add(entry, content)
    for folder in (ROOT / "crates/observe/kernel/fixtures", ROOT / "fixtures"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                name = "/" + str(path.relative_to(folder))
                for entry, pattern in FILES.items():
                    if re.search(pattern, name):
                        content = path.read_bytes()
                        # The entry of maps takes the size of its chunks from the first byte.
                        add(entry, b"\x20" + content if entry == "process-maps" else content)
    total = 0
    for entry, contents in sorted(seeds.items()):
        folder = CORPUS / entry
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        total += len(contents)
    print(f"{total} seeds of {len(seeds)} entries in fuzz/corpus")
    return 0


if __name__ == "__main__":
    sys.exit(main())
