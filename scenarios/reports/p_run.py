#!/usr/bin/env python3
"""Runs the jobs of the folders `p-*` beside this file under `ullage run` and holds each verdict to its expect.yaml.

    p_run.py --ullage PATH --python PYTHON-WITH-TORCH [--only PATTERN] [--save NAME]

`--save first` writes what was reported into `first.txt` of each folder: `first` is the run after the expectations were
committed and before anything was changed, `second` the same with jobs that had been too short to judge made longer,
`third` and `final` came with the changes, on a machine full of other work. In expect.yaml:

- `first`: causes of which one must be the first finding above a note; empty: there must be none
- `also`, `not`: causes that must be found above a note besides (`one|other`), and that must not be
- `roles`: roles that some process must have; `says`: words that some finding must hold
"""

import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import surroundings  # noqa: E402

ENTER = os.path.join(os.path.dirname(HERE), "enter.py")


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
                found[key] = value.strip("'")
    return found


def run(name, expect, arguments):
    folder = os.path.join(HERE, name)
    scratch, token, groups = surroundings.scratch_folder(), uuid.uuid4().hex, []
    prepared = {"cgroups": [], "limits": {}}
    try:
        if "cgroup_memory" in expect:
            groups = surroundings.make_cgroup("memory", surroundings.in_bytes(expect["cgroup_memory"]))
            prepared["cgroups"] = [groups[0]]
        if "nofile" in expect:
            prepared["limits"] = {"nofile": int(expect["nofile"])}
        command = [arguments.python if word == "python" else word for word in expect["job"]]
        command = [
            os.path.join(folder, word) if os.path.exists(os.path.join(folder, word)) else word for word in command
        ]
        options = ["--no-agent"] if expect.get("agent") == "false" else []
        enter = [sys.executable, "-I", "-S", ENTER, json.dumps(prepared)] if any(prepared.values()) else []
        verdict = os.path.join(scratch, "verdict.json")
        whole = [*enter, arguments.ullage, "run", *options, "--json", verdict, "--", *command]
        environment = {**os.environ, surroundings.MARK: token, "ULLAGE_HOME": f"{scratch}/home", "HOME": scratch}
        environment["PYTHON"] = arguments.python
        job = subprocess.run(
            whole, env=environment, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
        )
        with open(verdict) as file:
            return json.load(file), job.stderr
    finally:
        surroundings.end_marked(token)
        surroundings.remove_cgroups(groups)
        surroundings.remove_folder(scratch)


def wrong(expect, verdict):
    found = [finding for finding in verdict["findings"] if finding["severity"] != "note"]
    causes = [finding["cause"] for finding in found]
    said = json.dumps(verdict["findings"], ensure_ascii=False)
    first = expect["first"]
    if not first and causes:
        yield f"says {causes[0]}, and nothing is wrong"
    if first and (not causes or causes[0] not in first):
        yield f"first is {causes[:1] or 'nothing'}, not {' or '.join(first)}"
    for cause in expect.get("also", []):
        if not any(one in causes for one in cause.split("|")):
            yield f"{cause} is absent"
    for cause in expect.get("not", []):
        if cause in causes:
            yield f"{cause} is said"
    if verdict["healthy"] != (expect["healthy"] == "true"):
        yield f"healthy is {verdict['healthy']}"
    for word in expect.get("says", []):
        if word not in said:
            yield f"nothing says {word!r}"
    roles = {finding["process"]["role"] for finding in verdict["findings"] if finding["process"]}
    roles |= {limit["scope"] for limit in verdict["limits"]}
    for role in expect.get("roles", []):
        if not any(role in name for name in roles):
            yield f"no process is a {role} ({', '.join(sorted(roles))})"


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--save", metavar="NAME")
    arguments = parser.parse_args()
    arguments.ullage, arguments.python = os.path.abspath(arguments.ullage), os.path.abspath(arguments.python)
    right = total = 0
    for name in sorted(os.listdir(HERE)):
        path = os.path.join(HERE, name, "expect.yaml")
        if not name.startswith("p-") or not fnmatch.fnmatch(name, f"*{arguments.only}*") or not os.path.exists(path):
            continue
        expect = read_expectation(path)
        verdict, screen = run(name, expect, arguments)
        problems = list(wrong(expect, verdict))
        total, right = total + 1, right + (not problems)
        head = f"{'right' if not problems else 'wrong'}: {name}, {verdict['duration_s']:.1f} s"
        lines = [head, *(f"  {problem}" for problem in problems)]
        print("\n".join(lines), flush=True)
        if arguments.save:
            with open(os.path.join(HERE, name, f"{arguments.save}.txt"), "w") as file:
                file.write("\n".join(lines) + "\n\n" + screen)
    print(f"{right} of {total} right")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
