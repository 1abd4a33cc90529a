#!/usr/bin/env python3
"""Is a job under `ullage run` the job that it is without? Every job of side_by_side/ runs four ways, and the plain one
is what is expected.

    tests/side_by_side.py --ullage PATH --python PYTHON [--third] [--only TEXT]

Compared: the exit status, both streams, warnings (all are shown), what the job computed (it prints digests), files left
in its folder, in TMPDIR and in /dev/shm, and the processes that are alive afterwards. What differs from run to run is
taken out: pids, addresses, times. A job that differs is run plainly once more: where that differs too, the job varies
by itself, which is said. A way that did as either of the two did nothing to it; otherwise the job is at fault.

A difference passes where a row of the table in docs/reference/differences.md names its job and its way. Every other one
is a failure. Jobs that took much longer than plainly are listed at the end.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "side_by_side")
sys.path.insert(0, DATA)
MARK = "ULLAGE_TEST_SIDE"
AT_MOST_S = 600  # for a plain run
HANGS_S, TIMES_AS_LONG = 60, 20  # what is silent for a minute, and twenty times as long as the plain run, hangs
SLOW_S, TIMES_AS_SLOW = 20, 3  # what takes so long, and so many times as long as plainly, is listed
TEMPORARY = "files left in TMPDIR"
SETTLE_S = 10  # for processes to end that outlive the job: what is there then was left behind

WAYS = {
    "plain": [],
    "run": ["run", "-q", "--"],
    "fix": ["run", "-q", "--fix", "--"],
    "zygote": ["run", "-q", "--fix=all,zygote", "--"],
}

PAGE = os.path.join(HERE, "..", "docs", "reference", "differences.md")


def named_differences():
    """(job, way) of each difference that the page names: its rows are `| name, name | way, way | sentence |`."""
    with open(PAGE) as file:
        rows = [
            [cell.strip() for cell in line.strip().strip("|").split("|")] for line in file if line.startswith("| `")
        ]
    return {(name, way) for names, ways, _ in rows for name in re.findall("`(.+?)`", names) for way in ways.split(", ")}


VARYING = [
    # A warning of torch's own C++ names whatever line of Python was at work.
    (re.compile(r"(?m)^/\S+:\d+: (\w*Warning: .* \(Triggered internally .*)\n  .*$"), r"torch: \1"),
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"(?i)\b(pid\(?s?\)?|process|subprocess|thread|worker|tid|spid)([ =:#(]+)\d+(, \d+)*"), r"\1\2N"),
    (re.compile(r"<Process\(\d+\)|\[\d{2,}\]"), "[N]"),
    (re.compile(r"line \d+:\s+\d+ "), "line: "),
    (re.compile(r"object refcount : \d+"), "object refcount : N"),
    (re.compile(r"\d\d:\d\d:\d\d(\.\d+)?|\bin \d+\.\d+ ?s\b"), "TIME"),
    (re.compile(r"(torch_|psm_|mp-|pymp-|listener-|fifo-|tmp)[\w.-]+"), r"\1X"),
    (re.compile(r":\d{4,}: (\w+Warning)"), r":N: \1"),
]


def without_what_varies(text):
    if len(text) > 1 << 20:
        return hashlib.sha1(text.encode()).hexdigest()
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text


@dataclasses.dataclass
class Job:
    """What is run. `parts`: arguments for which it prints a result each, `NAME<tab>RESULT`; none where it is one."""

    name: str
    command: list
    parts: list
    stdin: str = ""
    send: str = ""
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Seen:
    """Name of each aspect -> value; seconds by part, or by the job's name."""

    aspects: dict
    took: dict


def jobs(python, ullage, step):
    """Those that can be run here, and the names of the others."""
    os.environ["SIDE_BY_SIDE_PYTHON"] = python
    import batches
    import clients
    import gpu
    import hostile
    import odd

    found, missing = [], []
    # Many in one process, because of what importing torch costs.
    for number, method in enumerate(["fork", "spawn", "forkserver"]):
        names = list(batches.KINDS)[number % step :: step]
        found.append(Job(f"batches-{method}", [python, os.path.join(DATA, "batches.py"), method], names))
    for method, names in (("fork", list(clients.CLIENTS)), ("spawn", clients.STARTED)):
        found.append(Job(f"clients-{method}", [python, os.path.join(DATA, "clients.py"), method], names[::step]))
    for method in ("fork", "spawn", "forkserver"):
        if os.path.exists("/dev/nvidiactl"):
            found.append(Job(f"gpu-{method}", [python, os.path.join(DATA, "gpu.py"), method], list(gpu.JOBS)[::step]))
        else:
            missing.append(f"gpu-{method}")
    for number, (name, one) in enumerate({**odd.JOBS, **hostile.JOBS}.items()):
        if number % step:
            continue
        if one.missing(os.geteuid() == 0):
            missing.append(name)
            continue
        words = [ullage if word == "@ULLAGE" else word for word in one.command]
        if words[0] == "@SCRIPT":
            words = [python, "@SCRIPT", words[1]]
        found.append(Job(name, words, [], one.stdin, one.send, one.env))
    return found, missing


def with_mark(token):
    """Living processes that carry it in their environment: pid and command."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            # Empty while it is being replaced by another program.
            if variables == [b""] and os.path.exists(f"/proc/{name}/exe"):
                time.sleep(0.01)
                with open(f"/proc/{name}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            if f"{MARK}={token}".encode() not in variables:
                continue
            with open(f"/proc/{name}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                found[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
    return found


def files_below(folder):
    found = []
    for place, folders, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(place, name), folder) for name in folders + names]
    return sorted(without_what_varies(name) for name in found if "__pycache__" not in name)


SUSPECTS = []  # (job, way, name in /dev/shm)
SLOTS = threading.Semaphore(1)  # jobs that run at a time
TOKENS = itertools.count()


def shm():
    return {name for name in os.listdir("/dev/shm")}


def run(job, way, ullage, folder, silent_s):
    """One process of a job, as the outside sees it. It is killed where nothing came from it for `silent_s`."""
    token = f"{os.getpid()}-{next(TOKENS)}"
    for name in ("cwd", "tmp", "home"):
        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        os.makedirs(f"{folder}/{name}")
        os.chmod(f"{folder}/{name}", 0o1777)
    command = ([ullage, *WAYS[way]] if WAYS[way] else []) + job.command + job.parts
    if "@SCRIPT" in command:
        place = command.index("@SCRIPT")
        with open(f"{folder}/program.py", "w") as file:
            file.write(command[place + 1])
        command[place : place + 2] = [f"{folder}/program.py"]
    env = {
        "PATH": os.environ["PATH"],
        "HOME": f"{folder}/home",
        "TMPDIR": f"{folder}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "default",
        "PYTHONHASHSEED": "1",
        "OMP_NUM_THREADS": "1",
        "ULLAGE_HOME": f"{folder}/ullage",
        MARK: token,
        **job.env,
    }
    with SLOTS:
        before = shm()
        with (
            open(f"{folder}/in", "w+") as stdin,
            open(f"{folder}/out", "wb") as out,
            open(f"{folder}/err", "wb") as err,
        ):
            stdin.write(job.stdin)
            stdin.seek(0)
            child = subprocess.Popen(
                command, env=env, cwd=f"{folder}/cwd", stdin=stdin, stdout=out, stderr=err, start_new_session=True
            )
        status, took = watched(child, job, folder, silent_s)
    deadline = time.monotonic() + SETTLE_S
    while with_mark(token) and status != "hangs" and time.monotonic() < deadline:
        time.sleep(0.1)
    left = {}
    while rest := with_mark(token):
        left.update(rest)
        for pid in rest:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    SUSPECTS.extend((job.name, way, name) for name in shm() - before)

    def text(name):
        return without_what_varies(read(f"{folder}/{name}").decode(errors="replace").replace(folder, "FOLDER"))

    seen = {
        "status": status,
        "out": text("out"),
        "err": text("err"),
        "files left in its folder": files_below(f"{folder}/cwd"),
        TEMPORARY: files_below(f"{folder}/tmp"),
        "files left in HOME": files_below(f"{folder}/home"),
        "processes left": sorted(without_what_varies(command)[:80] for command in left.values()),
    }
    return Seen(seen, took)


def watched(child, job, folder, silent_s):
    """Its status, and how long each of its lines took, or all of it."""
    began = heard_at = time.monotonic()
    took, lines = {}, 0
    while True:
        try:
            status = child.wait(0.02)
        except subprocess.TimeoutExpired:
            status = None
        now = time.monotonic()
        if job.send and status is None and b"ready" in read(f"{folder}/out"):
            os.killpg(child.pid, getattr(signal, job.send))
            job = dataclasses.replace(job, send="")
        if job.parts:
            for line in read(f"{folder}/out").decode(errors="replace").split("\n")[lines:-1]:
                lines += 1
                took[line.partition("\t")[0]] = now - heard_at
                heard_at = now
        if status is not None:
            return 128 - status if status < 0 else status, took if job.parts else {job.name: now - began}
        if now - heard_at > silent_s:
            child.kill()
            child.wait()
            return "hangs", took if job.parts else {job.name: now - began}


def observe(job, way, ullage, folder, silent_s=AT_MOST_S):
    """One run of a job. Where a part ends or hangs the process, the parts after it run in a new one."""
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    whole = run(job, way, ullage, folder, silent_s)
    if not job.parts:
        return whole
    results, parts, seen = {}, job.parts, whole
    together = {aspect: [] for aspect in seen.aspects if aspect not in ("out", "status")}
    while True:
        got = dict(line.split("\t", 1) for line in seen.aspects["out"].splitlines() if "\t" in line)
        results.update({part: got[part] for part in parts if part in got})
        whole.took.update(seen.took)
        for aspect in together:
            value = seen.aspects[aspect]
            together[aspect] += value.splitlines() if aspect == "err" else value
        lost = next((place for place, part in enumerate(parts) if part not in got), None)
        if lost is None:
            break
        results[parts[lost]] = f"nothing, {seen.aspects['status']}"
        parts = parts[lost + 1 :]
        if not parts:
            break
        seen = run(dataclasses.replace(job, parts=parts), way, ullage, folder, silent_s)
    # Each process of it writes when it comes to it.
    together = {aspect: sorted(set(value)) for aspect, value in together.items()}
    return Seen({**together, "status": seen.aspects["status"], **results}, whole.took)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def short(value, other):
    """The part of a value that differs from the other's."""
    value, other = str(value), str(other)
    start = next((n for n, (a, b) in enumerate(zip(value, other)) if a != b), min(len(value), len(other)))
    return repr(("…" if start > 40 else "") + value[max(0, start - 40) : start + 200])


def differ(aspect, expected, seen):
    # Fewer temporary files are left: by workers that were killed, torch's way leaves some.
    if aspect == TEMPORARY:
        return not set(seen[aspect]) <= set(expected[aspect])
    return seen[aspect] != expected[aspect]


def passes(job, aspect, way, allowed):
    return (aspect if aspect in job.parts else job.name, way) in allowed


def compare(job, ullage, folder, allowed):
    """(aspect, way, expected, seen) of each difference; (part, way, seconds, seconds plainly) of what is slow."""
    ways = list(WAYS)[1:]
    plain = observe(job, "plain", ullage, f"{folder}/0")
    expected, longest = plain.aspects, max(plain.took.values(), default=0)
    silent_s = max(HANGS_S, TIMES_AS_LONG * longest)
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        futures = [pool.submit(observe, job, way, ullage, f"{folder}/{n}", silent_s) for n, way in enumerate(ways, 1)]
    found, slow = [], []
    for way, seen in zip(ways, [future.result() for future in futures]):
        aspects = [aspect for aspect in expected if differ(aspect, expected, seen.aspects)]
        found += [(aspect, way, expected[aspect], seen.aspects[aspect]) for aspect in aspects]
        for part, took in seen.took.items():
            if took > max(SLOW_S, TIMES_AS_SLOW * plain.took.get(part, 0)):
                slow.append((part, way, took, plain.took.get(part, 0)))
    strange = [one for one in found if not passes(job, one[0], one[1], allowed)]
    if strange:
        parts = [part for part in job.parts if any(one[0] == part for one in strange)]
        alone = len(parts) == len({one[0] for one in strange})  # nothing else differs
        once_more = dataclasses.replace(job, parts=parts if alone else job.parts)
        again = observe(once_more, "plain", ullage, f"{folder}/0").aspects
        for aspect in parts if alone else expected:
            if aspect == TEMPORARY:
                # Left by chance, without ullage as well.
                more = set(expected[aspect]) | set(again[aspect])
                found = [one for one in found if one[0] != aspect or not set(one[3]) <= more]
            elif again[aspect] != expected[aspect]:
                # CPython's resource tracker, say, complains now and then.
                others = [one for one in found if one[0] == aspect and differ(aspect, again, {aspect: one[3]})]
                found = [one for one in found if one[0] != aspect]
                print(f"varies  plain   {job.name}: {aspect}", flush=True)
                print(f"        once    {short(expected[aspect], again[aspect])}")
                print(f"        again   {short(again[aspect], expected[aspect])}", flush=True)
                if others:
                    found.append((aspect, "plain, once more", expected[aspect], again[aspect]))
    shutil.rmtree(folder, ignore_errors=True)
    return found, slow


def main():
    global SLOTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--third", action="store_true", help="every third job")
    parser.add_argument("--only", default="", metavar="TEXT", help="jobs with this in their name, or in a part's")
    # Most jobs wait more than they compute.
    parser.add_argument("--together", type=int, default=2 * (os.cpu_count() or 2), help="processes at a time")
    args = parser.parse_args()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        # Jobs inherit what is ignored, as everything does that a shell starts in the background.
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    ullage, python = os.path.abspath(args.ullage), os.path.abspath(args.python)
    chosen, missing = jobs(python, ullage, 3 if args.third else 1)
    if args.only:
        for job in chosen:
            if args.only not in job.name:
                job.parts = [part for part in job.parts if args.only in part]
        chosen = [job for job in chosen if args.only in job.name or job.parts]
    count = sum(len(job.parts) or 1 for job in chosen)
    if not count:
        sys.exit("no job has that name")
    allowed = named_differences()
    unknown = {name for name, _ in allowed} - {
        name for job in jobs(python, ullage, 1)[0] for name in [job.name, *job.parts]
    }
    if unknown - set(missing):
        sys.exit(f"{os.path.relpath(PAGE)} names jobs that are not there: {', '.join(sorted(unknown - set(missing)))}")
    SLOTS = threading.Semaphore(args.together)
    failed, named, slow = set(), set(), []
    with tempfile.TemporaryDirectory(prefix="side-") as folder:
        os.chmod(folder, 0o755)
        with concurrent.futures.ThreadPoolExecutor(2 * args.together) as pool:
            work = {pool.submit(compare, job, ullage, f"{folder}/{n}", allowed): job for n, job in enumerate(chosen)}
            for done in concurrent.futures.as_completed(work):
                job, (differences, slow_here) = work[done], done.result()
                slow += slow_here
                for aspect, way, expected, seen in differences:
                    fine = passes(job, aspect, way, allowed)
                    (named if fine else failed).add((job.name, aspect if aspect in job.parts else "", way))
                    print(f"{'named  ' if fine else 'DIFFERS'} {way:<7} {job.name}: {aspect}", flush=True)
                    if not fine:
                        print(f"        plain {short(expected, seen)}")
                        print(f"        seen  {short(seen, expected)}", flush=True)
        # What is there for a moment is somebody's at work: what is there now was left.
        for name, way, left in SUSPECTS:
            if way != "plain" and os.path.exists(f"/dev/shm/{left}"):
                failed.add((name, "/dev/shm", way))
                print(f"DIFFERS {way:<7} {name}: left in /dev/shm: {left}")
    if missing:
        print(f"not run here, for want of root, a GPU or a program: {', '.join(missing)}")
    for part, way, took, plainly in slow:
        print(f"slow    {way:<7} {part}: {took:.0f} s, plainly {plainly:.1f} s")
    print(f"{count} jobs, {len(WAYS)} ways, {len(failed)} differences, {len(named)} that the docs name")
    print(f"{count - len({one[:2] for one in failed})} passed, {len({one[:2] for one in failed})} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
