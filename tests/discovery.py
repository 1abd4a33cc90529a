#!/usr/bin/env python3
"""Does ullage find every process of a job, and know how each ended?

    tests/discovery.py --ullage PATH [--python PYTHON] [--only NAME]

Each process of the job writes into a log when it began and when it is about to end. A process that lived, by that
log, from before a tick of the recording until the next one began must be in that tick's sample. Then 200 grandchildren are SIGKILLed
out of ullage's sight, and their endings compared.
"""

import argparse
import contextlib
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import watched

# The wall clock of the start and the clock of the ticks are read one after the other.
MARGIN_S = 0.05


def live(log, seconds):
    """What each logging process does: say so, live, say so."""
    me = {"pid": os.getpid(), "start": watched.start_ticks()}
    watched.log_line(log, **me, began=time.time())
    time.sleep(seconds)
    watched.log_line(log, **me, ends=time.time())


def forked(log, seconds):
    pid = os.fork()
    if pid == 0:
        live(log, seconds)
        os._exit(0)
    return pid


def reap_all():
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def job_fork(log):
    for k in range(5):
        forked(log, 1.5 + 0.3 * k)
    reap_all()


def with_method(log, method):
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=live, args=(log, 1.5 + 0.3 * k)) for k in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def job_spawn(log):
    with_method(log, "spawn")


def job_forkserver(log):
    with_method(log, "forkserver")


def job_fork_from_second_thread(log):
    thread = threading.Thread(target=lambda: [forked(log, 2) for _ in range(4)])
    thread.start()
    time.sleep(2.5)
    thread.join()
    reap_all()


def job_double_fork_setsid(log):
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            forked(log, 2.5)
            os._exit(0)
        os.waitpid(pid, 0)
    time.sleep(3)


def job_shell_pipeline(log):
    me = f"{sys.executable} {os.path.abspath(__file__)} --live {log}"
    subprocess.run(["sh", "-c", f"{me} 2 | {me} 2.3 | {me} 1.8"], check=False)


def job_outlive_parent(log):
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            forked(log, 3)
            live(log, 1.2)
            os._exit(0)
    time.sleep(3.5)


def job_outlive_main(log):
    for _ in range(3):
        forked(log, 10)  # by more than the grace after which survivors are named
    time.sleep(2)


def job_endings(log):
    """200 grandchildren: the child kills each and reaps it at once; ullage is not their parent."""
    child = os.fork()
    if child == 0:
        pids = []
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            pids.append((pid, watched.start_ticks(pid)))
        time.sleep(2.5)
        for pid, start in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            watched.log_line(log, pid=pid, start=start)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.5)


KINDS = {name[4:].replace("_", "-"): function for name, function in list(globals().items()) if name.startswith("job_")}


def recorded(arguments, kind, folder):
    job = [arguments.python, os.path.abspath(__file__), "--job", kind, f"{folder}/log"]
    # As many ticks as a life has room for, whatever one costs here.
    often = ["--interval", "200ms", "--watch-cpu", "100"]
    status = watched.start(arguments.ullage, folder, job, *often).wait(timeout=600)
    if status != 0:
        with open(f"{folder}/out", errors="replace") as file:
            raise RuntimeError(f"status {status}: {file.read()[-500:]}")
    log = watched.log_lines(f"{folder}/log")
    end_survivors(log)
    return watched.exported(arguments.ullage, folder), log


def end_survivors(log):
    """Who outlives the job writes to its log at the end: into a folder that is being removed by then."""
    alive = {(line["pid"], line["start"]) for line in log if is_alive(line["pid"], line["start"])}
    for pid, _ in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    watched.wait_for(lambda: not any(is_alive(*one) for one in alive))


def is_alive(pid, start):
    try:
        return watched.start_ticks(pid) == start
    except OSError:
        return False


def discovery(arguments, kind, folder):
    """(processes, those alive at a tick, sightings that were due, sightings made, what is wrong)"""
    items, log = recorded(arguments, kind, folder)
    lives = {}
    for line in log:
        lives.setdefault((line["pid"], line["start"]), {}).update(line)
    zero = watched.started_unix(folder)
    due = made = 0
    alive_once, missed, ticks = set(), [], watched.samples(items)
    for tick, following in zip(ticks, ticks[1:]):
        at, over = (zero + one["at"] / 1e9 for one in (tick, following))
        seen = {(p["id"]["pid"], p["id"]["start"]) for p in tick["processes"]}
        for who, life in lives.items():
            if life["began"] + MARGIN_S < at and over < life.get("ends", math.inf) - MARGIN_S:
                due += 1
                alive_once.add(who)
                if who in seen:
                    made += 1
                else:
                    missed.append((who, round(at - zero, 3)))
    wrong = f"missed {missed[:3]}" if missed else ""
    if not due:
        wrong = f"no process was alive at any of {len(ticks)} ticks: nothing was tested"
    if kind == "outlive-main" and not wrong:
        finished = watched.events(items, "finished")
        named = {(s["pid"], s["start"]) for what in finished for s in what["survivors"]}
        if not alive_once <= named:
            wrong = f"survivors named: {len(named)} of {len(alive_once)}"
    return len(lives), len(alive_once), due, made, wrong


def endings(arguments, folder):
    items, log = recorded(arguments, "endings", folder)
    said = {(e["id"]["pid"], e["id"]["start"]): e for e in watched.events(items, "process_ended")}
    right = unknown = 0
    wrong = []
    for line in log:
        event = said.get((line["pid"], line["start"]))
        if event is not None and event["ending"] == {"signaled": 9}:
            right += 1
        elif event is None or "not_seen" in event["ending"]:
            unknown += 1
        else:
            wrong.append(event)
    return len(log), right, unknown, wrong


def endings_can_be_read():
    """PIDFD_GET_INFO tells of processes that somebody else reaped, from kernel 6.15."""
    return tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 15)


def check(arguments):
    passed = failed = 0
    print(f"{'job':<26}{'processes':>10}{'at a tick':>10}{'due':>7}{'found':>7}  ")
    for kind in KINDS:
        if arguments.only not in kind:
            continue
        with tempfile.TemporaryDirectory(prefix="ullage-discovery-") as folder:
            try:
                if kind == "endings":
                    count, right, unknown, wrong = endings(arguments, folder)
                    bad = count != 200 or bool(wrong) or (unknown > 0 and endings_can_be_read())
                    print(f"200 grandchildren SIGKILLed: {right} right, {unknown} not seen, {len(wrong)} wrong")
                    problem = f"{wrong[:2]}" if bad else ""
                else:
                    count, alive, due, made, problem = discovery(arguments, kind, folder)
                    bad = bool(problem)
                    print(f"{kind:<26}{count:>10}{alive:>10}{due:>7}{made:>7}  {'WRONG' if bad else 'ok'}")
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                bad, problem = True, f"{kind}: {error}"
        if bad:
            print(f"    {problem}")
        passed, failed = passed + (not bad), failed + bad
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--live", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        kind, log = arguments.job
        KINDS[kind](log)
        return 0
    if arguments.live:
        live(arguments.live[0], float(arguments.live[1]))
        return 0
    if not arguments.ullage:
        parser.error("--ullage PATH is needed")
    arguments.ullage = os.path.abspath(arguments.ullage)
    return check(arguments)


if __name__ == "__main__":
    sys.exit(main())
