#!/usr/bin/env python3
"""What the agent costs a Python, paired with the same Python without it: a start, a fork, a message of multiprocessing, an
end by an exception, the memory of a job that forks workers beside many objects, and the time of a whole short job.

CPU time of a start (wait4) and of a message through a pipe, wall time of a fork with its end, and of a program that fails;
each the median over ROUNDS pairs of what the agent adds to a pair. Memory: the largest sum of PSS over the job's processes, read by this program from outside while the workers
wait, so that both runs are read at the same point. Printed beside the bounds; exit status 1 where one is not kept.

    python benches/agent.py --ullage .venv/bin/ullage --python .venv/bin/python [--rounds 40]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

FORKS = """
import os, sys, time
took = []
for _ in range(200):
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    took.append(time.perf_counter() - began)
print(sorted(took)[100] * 1e3)
"""

MESSAGES = """
import multiprocessing, time
reader, writer = multiprocessing.Pipe(False)
took = []
for _ in range(40):
    began = time.process_time()
    for _ in range(1000):
        writer.send((1, "a name", 2.0))
        reader.recv()
    took.append(time.process_time() - began)
print(sorted(took)[20] * 1e3)
"""

# Workers that never read what they inherited; the parent works on, so that it is looked into while they live.
SHARES = """
import gc, os, sys, time
data = [{"a": [n], "b": {"c": n}} for n in range(400_000)]
gc.collect()
ready, tell = os.pipe()
go, end = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        kept, until = [], time.monotonic() + 6
        while time.monotonic() < until:
            kept.append([bytes(1000) for _ in range(100)])
            time.sleep(0.02)
        os.write(tell, b"x")
        os.read(go, 1)
        os._exit(0)
kept, until = [], time.monotonic() + 6
while time.monotonic() < until:
    kept.append([bytes(1000) for _ in range(100)])
    time.sleep(0.02)
for _ in range(3):
    os.read(ready, 1)
print("ready", os.getpid(), flush=True)
sys.stdin.readline()
os.write(end, b"xxx")
for _ in range(3):
    os.wait()
"""


def inside(arguments, program, *options):
    """Runs this file again inside a job, where the agent is on the path."""
    with tempfile.TemporaryDirectory() as home:
        command = [arguments.ullage, "run", "-q", *options, "--", arguments.python, "-I", __file__, "--inside", program]
        environment = {**os.environ, "ULLAGE_HOME": home}
        said = subprocess.run(
            [*command, "--ullage", arguments.ullage, "--python", arguments.python, "--rounds", str(arguments.rounds)],
            env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
    return json.loads(said.stdout.splitlines()[-1])


def one(command, environment):
    """(CPU ms, wall ms) of a command to its end."""
    began = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1e3, (time.perf_counter() - began) * 1e3


def paired(python, code, rounds, which):
    """What is measured without and with the agent, a pair after the other; `which`: 0 CPU, 1 wall."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    plain, watched = [], []
    for number in range(rounds):
        for environment, figures in ((without, plain), (dict(os.environ), watched))[:: 1 if number % 2 else -1]:
            figures.append(one([python, "-c", code], environment)[which])
    return plain, watched


def figure(python, code, rounds):
    """The figure that a program prints, without and with the agent."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    plain, watched = [], []
    for _ in range(max(3, rounds // 10)):
        for environment, figures in ((without, plain), (dict(os.environ), watched)):
            figures.append(
                float(subprocess.run([python, "-c", code], env=environment, check=True, capture_output=True).stdout)
            )
    return plain, watched


def family(pid):
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                found += family(int(child))
    return found


def pss(command, environment):
    """MiB, over the program and its workers."""
    job = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(job.stdout.readline().split()[1])
    total = 0
    for process in family(pid):
        with open(f"/proc/{process}/smaps_rollup") as rollup:
            total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    job.communicate("\n")
    return total / 1024


def shared(arguments):
    plain, watched = [], []
    for _ in range(3):
        plain.append(pss([arguments.python, "-c", SHARES], os.environ))
        with tempfile.TemporaryDirectory() as home:
            run = [arguments.ullage, "run", "-q", "--", arguments.python, "-c", SHARES]
            watched.append(pss(run, {**os.environ, "ULLAGE_HOME": home}))
    return plain, watched


def short_job(arguments):
    """Milliseconds: of a job of 6 s with four loader workers, from its start to its end."""
    job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cost_job.py")
    command = [arguments.python, "-W", "ignore", job]
    few, many = (one([*command, str(steps)], os.environ)[1] for steps in (20, 120))
    command.append(str(20 + max(1, round((6000 - few) / max(1.0, (many - few) / 100)))))
    plain, watched = [], []
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "ULLAGE_HOME": home}
        for number in range(max(3, arguments.rounds // 3)):
            pair = ((command, plain), ([arguments.ullage, "run", "-q", "--", *command], watched))
            for words, figures in pair[:: 1 if number % 2 else -1]:
                figures.append(one(words, environment)[1])
    return plain, watched


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="rows with this in their name")
    parser.add_argument("--inside")
    arguments = parser.parse_args()
    if arguments.inside == "start":
        print(json.dumps(paired(arguments.python, "pass", arguments.rounds, 0)))
        return 0
    if arguments.inside == "fails":
        print(json.dumps(paired(arguments.python, "1/0", arguments.rounds, 1)))
        return 0
    if arguments.inside == "forks":
        print(json.dumps(figure(arguments.python, FORKS, arguments.rounds)))
        return 0
    if arguments.inside == "messages":
        print(json.dumps(figure(arguments.python, MESSAGES, arguments.rounds)))
        return 0
    failed = passed = 0
    for name, unit, bound, figures in (
        ("start, CPU", "ms more", 2.0, lambda: inside(arguments, "start")),
        ("fork and end, wall", "ms more", 1.0, lambda: inside(arguments, "forks")),
        ("message of multiprocessing, µs of CPU", "times", 1.05, lambda: inside(arguments, "messages")),
        ("end by an exception, wall", "ms more", 10.0, lambda: inside(arguments, "fails")),
        ("PSS of a job that forks beside 400,000 dicts", "times", 1.03, lambda: shared(arguments)),
        ("job of 6 s with four loader workers, wall", "ms more than 1.01 times", 30.0, lambda: short_job(arguments)),
    ):
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        plain, watched = figures()
        # Pair by pair: the machine's own speed drifts by more than what is looked for.
        share = 1.01 if "1.01" in unit else 1.0
        value = statistics.median(
            b / a if unit == "times" else b - share * a for a, b in zip(plain, watched, strict=True)
        )
        kept = value <= bound
        failed, passed = failed + (not kept), passed + kept
        print(
            f"{name:45} {statistics.median(plain):9.2f} {statistics.median(watched):9.2f}  {value:6.3f} {unit} of {bound} {'' if kept else 'TOO MUCH'}",
            flush=True,
        )
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
