#!/usr/bin/env python3
"""Do jobs in the shape of public reports get the cause that their reporters found? A row a job, and the score by kind.

    run.py --ullage PATH --python PYTHON-WITH-TORCH [--only PATTERN] [--batch NAME] [--save TABLE.md] [--screens FOLDER]
           [--recordings FOLDER] [--busy] [--no-agent | --watch]

`--busy`: beside one spinning process for each core. `--watch`: the job starts by itself, and `ullage watch PID` comes
8 s later. There, and with `--no-agent`, growth without a name is right as well. In expect.yaml:

- `kind`: `faulty`, `healthy` (it only seems to be faulty) or `bug` (an ordinary one: no memory in it)
- `first`: causes of which one must be the first finding above a note; empty: there must be none
- `also`, `not`: causes that must be found above a note besides (`one|other`), and that must not be
- `roles`: roles that some process must have; `says`: words that some finding must hold
- `job`, `exit`: the command and its own exit status; `needs`: a package, or `cuda`: a GPU that torch can use
- `cgroup_memory`, `cgroup_pids`, `nofile`, `shm`: limits of the job; `shm` is the size of a /dev/shm of its own
"""

import argparse
import collections
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import surroundings  # noqa: E402

ENTER = os.path.join(os.path.dirname(HERE), "enter.py")
LONGEST_S = 240


def read_expectation(path):
    """The flat part of YAML that these files use: a scalar or a list of words in brackets behind each key."""
    found = {}
    with open(path) as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition(": ")
            if value.startswith("["):
                words = value[1:-1].split(",")
                found[key] = [word.strip().removeprefix("'").removesuffix("'") for word in words if word.strip()]
            else:
                found[key] = value.strip().strip("'")
    return found


def recorded(command, arguments, expect, verdict, environment, scratch):
    """Runs the command under ullage; its exit status and screen."""
    whole = [*command[0], arguments.ullage, "run", "--json", verdict]
    if arguments.no_agent or expect.get("agent") == "false":
        whole.append("--no-agent")
    # Files, not pipes: what a job leaves behind would hold those open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile("w+", errors="replace") as screen:
        ended = subprocess.run(
            [*whole, "--", *command[1]],
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=screen,
            timeout=LONGEST_S,
        )
        screen.seek(0)
        return ended.returncode, screen.read()


def watched(command, arguments, verdict, environment, scratch):
    """Starts the command by itself, and watches it from its middle; its exit status and what `watch` says."""
    with open(os.path.join(scratch, "output"), "w") as output:
        job = subprocess.Popen(
            [*command[0], *command[1]],
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    time.sleep(8)
    seen = subprocess.run(
        [arguments.ullage, "watch", "--json", verdict, str(job.pid)],
        env=environment,
        cwd=scratch,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LONGEST_S,
    )
    return job.wait(timeout=LONGEST_S), seen.stdout + seen.stderr


def prepare(expect):
    """What `enter.py` sets up for the job's limits, and the cgroups to remove afterwards."""
    prepared, groups = {"cgroups": [], "limits": {}}, []
    if "cgroup_memory" in expect:
        groups += surroundings.make_cgroup("memory", surroundings.in_bytes(expect["cgroup_memory"].removesuffix("iB")))
    if "cgroup_pids" in expect:
        groups += surroundings.make_cgroup("pids", int(expect["cgroup_pids"]))
    prepared["cgroups"] = list(groups)
    if "nofile" in expect:
        prepared["limits"]["nofile"] = int(expect["nofile"])
    if "shm" in expect:
        size = surroundings.in_bytes(expect["shm"].removesuffix("iB"))
        prepared["tmpfs"] = [{"path": "/dev/shm", "options": f"size={size}"}]
    return prepared, groups


def run(name, expect, arguments):
    """The verdict on a job, its exit status and the screen."""
    folder = os.path.join(HERE, name)
    scratch, token, groups = surroundings.scratch_folder(), uuid.uuid4().hex, []
    try:
        prepared, groups = prepare(expect)
        job = [arguments.python if word == "python" else word for word in expect["job"]]
        job = [os.path.join(folder, word) if os.path.exists(os.path.join(folder, word)) else word for word in job]
        enter = [sys.executable, "-I", "-S", ENTER, json.dumps(prepared)] if any(prepared.values()) else []
        environment = {**os.environ, surroundings.MARK: token, "ULLAGE_HOME": f"{scratch}/home", "HOME": scratch}
        environment.update(PYTHON=arguments.python, MPLCONFIGDIR=scratch)
        if arguments.packages:
            environment["PYTHONPATH"] = arguments.packages
        verdict = os.path.join(scratch, "verdict.json")
        if arguments.watch:
            status, screen = watched((enter, job), arguments, verdict, environment, scratch)
        else:
            status, screen = recorded((enter, job), arguments, expect, verdict, environment, scratch)
        with open(verdict) as file:
            return json.load(file), status, screen
    finally:
        surroundings.end_marked(token)
        surroundings.remove_cgroups(groups)
        if arguments.recordings and os.path.exists(f"{scratch}/home"):
            shutil.copytree(f"{scratch}/home", os.path.join(arguments.recordings, name), dirs_exist_ok=True)
        surroundings.remove_folder(scratch)


def judge(expect, verdict, status, blind):
    """A word, and what is wrong. `below`: found, but not first; `missed`: not found, and not called healthy; `WRONG`:
    healthy though it is faulty, faulty though it is healthy, or another cause, established or supported."""
    above = [finding for finding in verdict["findings"] if finding["severity"] != "note"]
    causes = [finding["cause"] for finding in above]
    first = expect["first"] + (["unnamed-growth"] if blind and expect["first"] else [])
    problems = []
    grave = False
    if not first and causes:
        problems.append(f"says {causes[0]}")
        grave = True
    if first and (not causes or causes[0] not in first):
        problems.append(f"first is {causes[:1] or 'nothing'}, not {' or '.join(first)}")
        grave = verdict["healthy"] or (bool(above) and above[0]["status"] in ("established", "supported"))
    # A bug leaves a run that is not healthy, and nothing to find.
    if expect["kind"] != "bug" and verdict["healthy"] != (expect["healthy"] == "true"):
        problems.append(f"healthy is {verdict['healthy']}")
        grave = True
    for cause in expect.get("not", []):
        if cause in causes and not (blind and cause == "unnamed-growth"):
            problems.append(f"{cause} is said")
            grave = True
    if "exit" in expect and status != int(expect["exit"]):
        problems.append(f"exit status {status}")
        grave = True
    if not blind:
        problems.extend(absent(expect, verdict, causes))
    found = any(finding["cause"] in expect["first"] for finding in verdict["findings"])
    if not problems:
        return "right", problems
    return ("below" if found and not grave else "WRONG" if grave else "missed"), problems


def absent(expect, verdict, causes):
    """What else the verdict must hold, and does not."""
    said = json.dumps(verdict["findings"], ensure_ascii=False)
    for cause in expect.get("also", []):
        if not any(one in causes for one in cause.split("|")):
            yield f"{cause} is absent"
    for word in expect.get("says", []):
        if word not in said:
            yield f"nothing says {word!r}"
    roles = {finding["process"]["role"] for finding in verdict["findings"] if finding["process"]}
    roles |= {limit["scope"] for limit in verdict["limits"]}
    for role in expect.get("roles", []):
        if not any(role in name for name in roles):
            yield f"no process is a {role}"


def row(name, expect, arguments):
    """The kind, the judgement and the words of a table's row; the screen."""
    if "needs" in expect:
        environment = {**os.environ, "PYTHONPATH": arguments.packages or ""}
        asked = f"import {expect['needs']}"
        if expect["needs"] == "cuda":
            asked = "import sys, torch; sys.exit(not torch.cuda.is_available())"
        there = [arguments.python, "-c", asked]
        if subprocess.run(there, env=environment, capture_output=True).returncode:
            return "skipped", f"no {expect['needs']}", "", "", ""
    blind = arguments.no_agent or arguments.watch
    try:
        verdict, status, screen = run(name, expect, arguments)
    except subprocess.TimeoutExpired as error:
        return "WRONG", f"not over after {LONGEST_S} s", "", "", str(error.stderr)
    except FileNotFoundError as error:
        return "WRONG", f"no verdict: {error}", "", "", ""
    judged, problems = judge(expect, verdict, status, blind)
    found = [f"{one['cause']}/{one['severity']}/{one['status']}" for one in verdict["findings"]]
    growth = verdict.get("growth") or {}
    grown = f"{growth.get('class', '-')} {growth.get('bytes', 0) >> 20} MiB"
    return judged, "; ".join(problems), " ".join(found) or "none", grown, screen


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--packages", help="added to PYTHONPATH")
    parser.add_argument("--only", default="*")
    parser.add_argument("--batch", help="only the jobs of this batch")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--no-agent", action="store_true")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--save", help="the table, as a page")
    parser.add_argument("--screens", help="a folder for what each job got to see")
    parser.add_argument("--recordings", help="a folder for what each job's run recorded")
    arguments = parser.parse_args()
    arguments.ullage, arguments.python = os.path.abspath(arguments.ullage), os.path.abspath(arguments.python)
    rows = []
    spin = [sys.executable, "-c", "while True: pass"]
    beside = [subprocess.Popen(spin) for _ in range(os.cpu_count())] if arguments.busy else []
    try:
        for name in fnmatch.filter(sorted(os.listdir(HERE)), arguments.only):
            path = os.path.join(HERE, name, "expect.yaml")
            if not os.path.exists(path):
                continue
            expect = read_expectation(path)
            if arguments.batch not in (None, expect["batch"]):
                continue
            *words, screen = row(name, expect, arguments)
            rows.append((name, expect["kind"], *words))
            print(" | ".join(rows[-1]), flush=True)
            if arguments.screens:
                os.makedirs(arguments.screens, exist_ok=True)
                with open(os.path.join(arguments.screens, f"{name}.txt"), "w") as file:
                    file.write(screen)
    finally:
        for process in beside:
            process.kill()
    score = collections.Counter((kind, judged) for _, kind, judged, *_ in rows)
    lines = []
    for kind in ("faulty", "healthy", "bug"):
        ran = sum(count for (one, judged), count in score.items() if one == kind and judged != "skipped")
        others = ", ".join(f"{score[kind, word]} {word}" for word in ("below", "missed", "WRONG", "skipped"))
        lines.append(f"{kind}: {score[kind, 'right']} of {ran} right, {others}")
    print("\n".join(lines))
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write("| job | kind | judged | what is wrong | findings | growth |\n|---|---|---|---|---|---|\n")
            file.writelines("| " + " | ".join(row) + " |\n" for row in rows)
            file.write("\n" + "\n".join(lines) + "\n")
    return 0 if rows and all(judged in ("right", "skipped") for _, _, judged, *_ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
