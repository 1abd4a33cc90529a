"""Does the first line of a verdict mislead? Small jobs that grow to their end, and small jobs that are well.

Prints how many of the growing ones got no finding above a note (none may), and how many of the healthy ones got one
(none may). `--quick` runs a few of each kind.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

JOBS = pathlib.Path(__file__).resolve().parent / "first_line_jobs.py"

# Job, and how it is looked at: with the agent, without it, or from outside.
GROWING = [
    ("list-of-bytes", "run"),
    ("arrays-in-place", "run"),
    ("tensors-in-list", "run"),
    ("dict-by-key", "run"),
    ("native-leak", "run"),
    ("bytearray-grows", "run"),
    ("deque-unbounded", "run"),
    ("child-grows", "run"),
    ("two-children-grow", "run"),
    ("anonymous-maps", "run"),
    ("list-of-bytes", "no-agent"),
    ("many-small-objects", "no-agent"),
    ("tensors-in-list", "no-agent"),
    ("extension-grows", "no-agent"),
    ("grows-in-stairs", "no-agent"),
    ("child-grows", "no-agent"),
    ("linked-objects", "watch"),
    ("arrays-in-place", "watch"),
    ("native-leak", "watch"),
    ("array-grows", "watch"),
]
HEALTHY = [
    ("import-torch", "run"),
    ("import-torch", "no-agent"),
    ("import-torch", "watch"),
    ("import-numpy", "run"),
    ("one-batch", "run"),
    ("one-batch", "no-agent"),
    ("train-loop", "run"),
    ("loader-epoch", "run"),
    ("checkpoint-saved-and-loaded", "run"),
    ("checkpoint-loaded-at-the-end", "run"),
    ("checkpoint-loaded-at-the-end", "no-agent"),
    ("data-loaded-then-used", "no-agent"),
    ("large-temporary", "run"),
    ("sawtooth", "no-agent"),
    ("sawtooth", "watch"),
    ("buffer-filled-at-once", "run"),
    ("buffer-filled-by-steps", "run"),
    ("buffer-filled-by-steps", "no-agent"),
    ("warm-up-that-flattens", "run"),
    ("warm-up-that-flattens", "no-agent"),
    ("bounded-deque", "run"),
    ("bounded-cache", "no-agent"),
    ("subprocesses", "run"),
    ("thread-pool", "run"),
    ("pool-map", "run"),
    ("page-cache", "no-agent"),
    ("shared-memory-bounded", "run"),
    ("mapped-dataset", "run"),
    ("collector-at-work", "run"),
    ("waits", "watch"),
]
QUICK = {
    ("arrays-in-place", "run"),
    ("list-of-bytes", "no-agent"),
    ("native-leak", "watch"),
    ("import-torch", "run"),
    ("one-batch", "no-agent"),
    ("warm-up-that-flattens", "no-agent"),
    ("buffer-filled-by-steps", "run"),
}


def looked_at(ullage, python, job, how):
    """The verdict of one job."""
    with tempfile.TemporaryDirectory(prefix="ullage-first-") as folder:
        file = pathlib.Path(folder) / "verdict.json"
        environment = {**os.environ, "ULLAGE_HOME": folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1"}
        # What is said of readings is asked here, not how many this machine affords.
        environment["ULLAGE_WATCH_CPU"] = "100"
        program = [python, str(JOBS), job]
        if how == "watch":
            with subprocess.Popen(
                program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process:
                process.stdout.readline()
                command = [ullage, "watch", str(process.pid), "--every", "0.2", "--json", str(file)]
                with subprocess.Popen(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
                ) as watcher:
                    watcher.stderr.readline()  # it has looked once
                    process.stdin.close()
                    watcher.stderr.read()
        else:
            agent = ["--no-agent"] if how == "no-agent" else []
            command = [ullage, "run", "-q", *agent, "--json", str(file), "--", *program]
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True
            )
            if done.returncode != 0:
                raise SystemExit(f"{job} failed: {done.stderr}")
        return json.loads(file.read_text())


def told(verdict):
    """Causes above a note, with the first title."""
    found = [finding for finding in verdict["findings"] if finding["severity"] != "note"]
    title = f" ({found[0]['title']})" if found else ""
    return ", ".join(finding["cause"] for finding in found), title


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ullage", required=True)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--together", type=int, default=1, help="jobs at a time")
    options.add_argument("--only", nargs="*", help="names of jobs")
    asked = options.parse_args()
    tasks = [(*task, True) for task in GROWING] + [(*task, False) for task in HEALTHY]
    tasks = [task for task in tasks if not asked.quick or task[:2] in QUICK]
    tasks = [task for task in tasks if not asked.only or task[0] in asked.only]
    misled, cried = [], []
    with concurrent.futures.ThreadPoolExecutor(asked.together) as pool:
        ullage = os.path.abspath(asked.ullage)
        verdicts = pool.map(lambda task: looked_at(ullage, asked.python, *task[:2]), tasks)
        for (job, how, grows), verdict in zip(tasks, verdicts):
            causes, title = told(verdict)
            notes = [finding["cause"] for finding in verdict["findings"] if finding["severity"] == "note"]
            right = bool(causes) == grows
            if not right:
                (misled if grows else cried).append((job, how))
            kind = "grows" if grows else "well "
            growth = verdict.get("growth") or {}
            figures = f"{growth.get('class')} {growth.get('bytes', 0) / 2**20:.0f} MiB"
            said = causes or ("healthy" if verdict["healthy"] else "nothing found")
            mark = "ok  " if right else "FAIL"
            print(f"{mark} {kind} {job} [{how}]: {said}{title}; notes {notes}; {figures}", flush=True)
    growing = sum(grows for *_, grows in tasks)
    print(f"growing jobs without a finding above a note: {len(misled)} of {growing} {misled or ''}")
    print(f"healthy jobs with one: {len(cried)} of {len(tasks) - growing} {cried or ''}")
    return 1 if misled or cried else 0


if __name__ == "__main__":
    sys.exit(main())
