#!/usr/bin/env python3
"""How large are recordings, what does a SIGKILL cost, and do other tools open them?

    python benches/recording.py --ullage PATH --footprint PATH [--python PYTHON] [--minutes 10] [--kills 50]

Three parts, each with its bars:

1. Real recordings, with default options, of 64 idle processes and of 64 busy ones, side by side: megabytes an hour, all
   files counted (the start, which is dense, counts as if it went on), beside the same facts as gzipped JSON lines.
   And a whole hour of each kind, simulated, through the real writer (--footprint: the example of that name of
   ullage-recording; busy: every figure of every process moves at random every second).
2. ullage killed at random moments (tests/kill_recorder.py): samples lost, beside what a log beside it counted.
3. The commands of docs/recording-format.md, taken from there as they are, on closed recordings, on repaired ones, and
   on a live tail; the tables as exported; what they read is compared with the JSON of `ullage export`.

pyarrow, polars and duckdb must be importable by --python; so must torch, or the busy processes use no tensors.
"""

import argparse
import collections
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests"))
import kill_recorder  # noqa: E402
import watched  # noqa: E402

IDLE = """
import os, signal, sys, time
children = []
for _ in range(64):
    children.append(os.fork())
    if not children[-1]:
        time.sleep(1e9)
time.sleep(float(sys.argv[1]))
for child in children:
    os.kill(child, signal.SIGKILL)
"""

# Each child wakes some times a second, makes and drops tensors of random sizes, touches what it inherited, shares
# memory, opens files and starts threads: every figure that ullage reads moves.
BUSY = """
import os, random, signal, sys, tempfile, threading, time
try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None
inherited = bytearray(64 << 20)

def block(size):
    return bytearray(os.urandom(1) * size)

def work(number):
    chance = random.Random(number)
    held, files, shared = [], [], []
    while True:
        held = [block(chance.randrange(1 << 12, 1 << 19)) for _ in range(chance.randrange(4))] + held[:10]
        held = held[:chance.randrange(12)]
        for _ in range(chance.randrange(40)):
            inherited[chance.randrange(len(inherited))] += 1 & chance.randrange(2)
        if torch:
            batch = torch.randn(chance.randrange(1, 40), 1000)
            (batch @ batch.T).sum()
            if chance.randrange(8) == 0:
                shared = [torch.zeros(chance.randrange(1, 50000)).share_memory_() for _ in range(chance.randrange(4))]
        if chance.randrange(4) == 0:
            files = [open(os.devnull) for _ in range(chance.randrange(10))]
        if chance.randrange(10) == 0:
            threading.Thread(target=time.sleep, args=(chance.random() * 2,)).start()
        time.sleep(chance.expovariate(1.5))

children = []
for number in range(64):
    children.append(os.fork())
    if not children[-1]:
        work(number)
time.sleep(float(sys.argv[1]))
for child in children:
    os.kill(child, signal.SIGKILL)
"""

BARS_MB = {"idle": 1.0, "busy": 5.0}
# Appended to a program that has read `processes`, by whatever tool: how many rows, and the sum of a column with nulls.
CHECK = """
import json
if hasattr(processes, "fetchall"):
    values = [row[0] for row in processes.project("anonymous_bytes").fetchall()]
else:
    column = processes["anonymous_bytes"]
    values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
print(json.dumps([len(values), sum(value or 0 for value in values)]))
"""
CHECK_TAIL = """
print(ticks.num_rows)
"""


class Bars:
    """Each bar with what was measured; counted at the end."""

    def __init__(self):
        self.met, self.missed = 0, 0

    def __call__(self, name, good, measured):
        self.met, self.missed = self.met + bool(good), self.missed + (not good)
        print(f"bar {name}: {measured}: {'met' if good else 'MISSED'}", flush=True)


def size_of(folder):
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries)


def tables_of(folder):
    sizes = collections.Counter()
    with os.scandir(folder) as entries:
        for entry in entries:
            sizes[re.split("[-.]", entry.name)[0]] += entry.stat().st_size
    return dict(sizes.most_common())


def start(arguments, kind, folder, seconds):
    os.mkdir(f"{folder}/{kind}")
    program = {"idle": IDLE, "busy": BUSY}[kind]
    return subprocess.Popen(
        [arguments.ullage, "run", "-q", "--record", f"{folder}/{kind}/run", "--"]
        + [arguments.python, "-c", program, str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def gzipped(arguments, folder):
    done = subprocess.Popen(
        [arguments.ullage, "export", folder, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with tempfile.TemporaryFile() as file:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6) as out:
            while chunk := done.stdout.read(1 << 20):
                out.write(chunk)
        return file.tell()


def real(arguments, folder, bars):
    seconds = arguments.minutes * 60
    jobs = {kind: start(arguments, kind, folder, seconds) for kind in BARS_MB}
    if not watched.wait_for(lambda: os.path.exists(f"{folder}/busy/run/processes.arrows")):
        raise SystemExit("the busy job does not start")
    time.sleep(10)
    live = opened(arguments, f"{folder}/busy/run", [block for block in blocks() if ".arrows" in block], CHECK_TAIL)
    bars("a live tail opens", len(live) == 1 and isinstance(live[0], int) and live[0] > 5, f"{live} rows")
    for kind, job in jobs.items():
        said = job.communicate()[1]
        run = f"{folder}/{kind}/run"
        with open(f"{run}/run.json") as file:
            facts = json.load(file)
        took = facts["duration_s"]
        items = watched.exported(arguments.ullage, f"{folder}/{kind}")
        samples = watched.samples(items)
        processes = statistics.median(len(sample["processes"]) for sample in samples)
        print(f"{kind}: {len(samples)} samples in {took:.0f} s, {processes:.0f} processes {said.strip()}")
        size, per_hour = size_of(run), 3600 / took
        print(f"  bytes by table: {tables_of(run)}, in {len(os.listdir(run))} files")
        peer = gzipped(arguments, run)
        print(f"  as gzipped JSON lines: {peer * per_hour / 1e6:.2f} MB an hour, {peer / size:.1f} times as much")
        costly_columns(arguments, run)
        measured = f"{size * per_hour / 1e6:.3f} MB an hour (of {took:.0f} s), at most {BARS_MB[kind]:.0f}"
        bars(f"64 {kind} processes, real", size * per_hour <= BARS_MB[kind] * 1e6 and processes >= 65, measured)


def costly_columns(arguments, run):
    program = """
import collections, glob, sys
import pyarrow.parquet as pq
sizes = collections.Counter()
for name in glob.glob(sys.argv[1] + "/*.parquet"):
    data = pq.ParquetFile(name).metadata
    for group in range(data.num_row_groups):
        for column in range(data.num_columns):
            chunk = data.row_group(group).column(column)
            sizes[name.rsplit("/", 1)[1].split("-")[0] + "." + chunk.path_in_schema] += chunk.total_compressed_size
print("  columns with most bytes:", ", ".join(f"{name} {size}" for name, size in sizes.most_common(10)))
"""
    subprocess.run([arguments.python, "-c", program, run], check=True)


def simulated(arguments, folder, bars):
    for kind, most in BARS_MB.items():
        said = subprocess.run(
            [arguments.footprint, "64", kind, f"{folder}/simulated"], capture_output=True, text=True, check=True
        ).stdout
        print("  " + said.strip().replace("\n", "\n  "))
        size = size_of(f"{folder}/simulated")
        bars(f"64 {kind} processes, simulated hour", size <= most * 1e6, f"{size / 1e6:.3f} MB, at most {most:.0f}")


def blocks():
    """The Python of the documents, as it stands there."""
    with open(os.path.join(HERE, "../docs/recording-format.md")) as file:
        return re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)


def opened(arguments, run, programs, check=CHECK):
    """What each program prints, run where RUN is the recording; a string where it failed."""
    results = []
    for program in programs:
        with tempfile.TemporaryDirectory() as here:
            os.symlink(os.path.abspath(run), f"{here}/RUN")
            done = subprocess.run(
                [arguments.python, "-c", program + check], cwd=here, capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            results.append(done.stderr.strip().splitlines()[-1])
        else:
            results.append(json.loads(done.stdout))
    return results


def expected(items):
    rows, total = 0, 0
    for sample in watched.samples(items):
        for process in sample["processes"]:
            rows += 1
            memory = process["memory"].get("known")
            total += memory["anonymous"] if memory else 0
    return [rows, total]


def exported(arguments, run, folder):
    """The tables as exported, read by each tool."""
    programs = []
    for kind in ("parquet", "csv"):
        out = f"{folder}/{kind}"
        subprocess.run(
            [arguments.ullage, "export", run, "--format", kind, "-o", out], check=True, stderr=subprocess.DEVNULL
        )
        file = f"{out}/processes.{kind}"
        module, read = {"parquet": ("pyarrow.parquet", "read_table"), "csv": ("pyarrow.csv", "read_csv")}[kind]
        programs += [
            f"from {module} import {read}\nprocesses = {read}({file!r})\n",
            f"import polars\nprocesses = polars.read_{kind}({file!r})\n",
            f"import duckdb\nprocesses = duckdb.sql(\"select * from '{file}'\")\n",
        ]
    return opened(arguments, run, programs)


def open_with_tools(arguments, run, folder, name, bars):
    want = expected(watched.exported(arguments.ullage, os.path.dirname(run)))
    closed = [block for block in blocks() if ".arrows" not in block]
    got = opened(arguments, run, closed)
    bars(f"{name}: pyarrow, polars, duckdb", len(got) == 3 and all(g == want for g in got), f"{got}, JSON {want}")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        got = exported(arguments, run, out)
    bars(f"{name}, exported", len(got) == 6 and all(g == want for g in got), f"{got}")


def killed_large(arguments, folder, bars):
    """A recording of 64 busy processes whose recorder is killed, repaired by `ullage report`."""
    job = start(arguments, "busy", tempfile.mkdtemp(dir=folder), 60)
    run = job.args[job.args.index("--record") + 1]
    time.sleep(30)
    job.kill()
    job.communicate()
    os.killpg(job.pid, signal.SIGKILL)
    report = subprocess.run([arguments.ullage, "report", run], capture_output=True, text=True, check=False)
    bars("report on a killed recording", report.returncode == 0, f"status {report.returncode}")
    open_with_tools(arguments, run, folder, "repaired, 64 busy processes", bars)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--footprint", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep", help="folder for the recordings, which stay there")
    arguments = parser.parse_args()
    arguments.ullage = os.path.abspath(arguments.ullage)
    bars = Bars()
    with tempfile.TemporaryDirectory(prefix="ullage-recording-") as folder:
        folder = arguments.keep or folder
        print("== size")
        simulated(arguments, folder, bars)
        real(arguments, folder, bars)
        print("== kills")
        repaired = []
        kills = argparse.Namespace(
            ullage=arguments.ullage, python=arguments.python, times=arguments.kills, seed=arguments.seed, jobs=2
        )

        closed = [block for block in blocks() if ".arrows" not in block]

        def then(run):
            items = watched.exported(arguments.ullage, os.path.dirname(run))
            repaired.append((expected(items), opened(arguments, run, closed)))

        passed, of = kill_recorder.kill(kills, then)
        bars("at most one sample lost at a SIGKILL", passed == of >= 1, f"{passed} of {of} kills")
        good = sum(all(g == want for g in got) for want, got in repaired)
        bars("repaired ones open", good == of, f"{good} of {of} by all three tools, with every row")
        print("== other tools")
        for kind in BARS_MB:
            open_with_tools(arguments, f"{folder}/{kind}/run", folder, f"closed, 64 {kind} processes", bars)
        killed_large(arguments, folder, bars)
    print(f"{bars.met} passed, {bars.missed} failed")
    return 0 if bars.met and not bars.missed else 1


if __name__ == "__main__":
    sys.exit(main())
