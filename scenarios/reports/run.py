#!/usr/bin/env python3
"""Do jobs in the shape of public reports get the cause that their reporters found? Prints a table; nothing is tuned.

run.py --ullage PATH --python PYTHON-WITH-TORCH [--only NAME] [--seconds 30] [--packages FOLDER] [--save FILE]
"""

import argparse
import fnmatch
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def expectations(folder):
    found = {}
    with open(os.path.join(folder, "expect.yaml")) as file:
        for line in file:
            key, _, value = line.strip().partition(": ")
            inside = value.startswith("[")
            found[key] = [one.strip() for one in value[1:-1].split(",") if one.strip()] if inside else value
    return found


def run(arguments, name):
    folder = os.path.join(HERE, name)
    expected = expectations(folder)
    with tempfile.TemporaryDirectory() as scratch:
        verdict = os.path.join(scratch, "verdict.json")
        environment = {**os.environ, "ULLAGE_HOME": scratch, "MPLCONFIGDIR": scratch}
        if arguments.packages:
            environment["PYTHONPATH"] = arguments.packages
        if "needs" in expected:
            there = [arguments.python, "-c", f"import {expected['needs']}"]
            if subprocess.run(there, env=environment, capture_output=True).returncode:
                return name, "skipped", f"no {expected['needs']}", "", ""
        job = [arguments.python, os.path.join(folder, "job.py"), str(arguments.seconds)]
        command = [arguments.ullage, "run", "--json", verdict, "--", *job]
        ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if arguments.screen:
            print(ended.stdout + ended.stderr)
        with open(verdict) as file:
            found = json.load(file)
    return (name, *judged(expected, found))


def judged(expected, verdict):
    causes = [(one["cause"], one["severity"], one["status"]) for one in verdict["findings"]]
    above = [cause for cause, severity, _ in causes if severity != "note"]
    first = above[0] if above else "none"
    right = first in expected["expect"] if expected["expect"] else not above
    right = right and not set(above) & set(expected.get("never", []))
    anywhere = bool(set(cause for cause, _, _ in causes) & set(expected["expect"]))
    growth = verdict.get("growth") or {}
    return (
        "right" if right else "below" if anywhere else "WRONG",
        first,
        " ".join(f"{cause}/{severity}/{status}" for cause, severity, status in causes),
        f"{growth.get('class', '-')} {growth.get('bytes', 0) >> 20} MiB",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--packages", help="added to PYTHONPATH")
    parser.add_argument("--only", default="*")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--save", help="the table, as a page")
    parser.add_argument("--screen", action="store_true", help="what ullage printed, too")
    arguments = parser.parse_args()
    # Those of p_run.py state what they expect in another way.
    jobs = [name for name in os.listdir(HERE) if not name.startswith("p-")]
    names = sorted(name for name in jobs if os.path.exists(os.path.join(HERE, name, "job.py")))
    rows = []
    for name in fnmatch.filter(names, arguments.only):
        rows.append(run(arguments, name))
        print(" | ".join(rows[-1]), flush=True)
    right = sum(row[1] == "right" for row in rows)
    skipped = sum(row[1] == "skipped" for row in rows)
    last = f"{right} of {len(rows) - skipped} right, {skipped} skipped"
    print(last)
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write("| job | judged | first cause | all findings | growth |\n|---|---|---|---|---|\n")
            file.writelines("| " + " | ".join(row) + " |\n" for row in rows)
            file.write(f"\n{last}\n")


if __name__ == "__main__":
    main()
