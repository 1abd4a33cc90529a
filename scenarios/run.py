#!/usr/bin/env python3
"""Runs each scenario under `ullage run --json` and compares the verdict with the one it must get.

    run.py --ullage PATH --python PYTHON-WITH-TORCH [--set smoke|all|matrix] [--only PATTERN]
    run.py --ullage PATH --python PYTHON-WITH-TORCH --lookalikes | --origin [--guest-logs FOLDER]

Prints a row a case, the confusion table, and `N passed, N failed, N skipped`; a case that this machine cannot run is
listed with the reason.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import cases as descriptions
import lookalikes
import origin
import surroundings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests"))
import screens  # noqa: E402

ENTER = os.path.join(HERE, "enter.py")


class Case:
    """One case in its surroundings; leaving the `with` block puts everything back."""

    running = set()

    def __init__(self, case, arguments, python):
        self.case, self.arguments, self.python = case, arguments, python
        self.token = uuid.uuid4().hex
        self.cgroups = []

    def __enter__(self):
        self.scratch = surroundings.scratch_folder()
        self.before = surroundings.segments()
        Case.running.add(self.token)
        return self

    def __exit__(self, *_):
        surroundings.end_marked(self.token)
        surroundings.remove_cgroups(self.cgroups)
        # Beside other cases a segment without its maker may be what one of them is about.
        if self.arguments.jobs == 1:
            surroundings.remove_torch_segments(self.before)
        surroundings.remove_folder(self.scratch)
        Case.running.discard(self.token)

    def fill(self, text):
        names = {"python": self.python, "plain": self.arguments.plain_python, "scenarios": HERE}
        names |= {"causes": descriptions.CAUSES, "here": self.case["here"], "scratch": self.scratch}
        for name, value in names.items():
            text = text.replace("{" + name + "}", value)
        return text

    def setup(self):
        setup, prepared = self.case.get("setup", {}), {"cgroups": []}
        for key in ("memory", "pids", "cpu"):
            if f"cgroup_{key}" in setup:
                limit = surroundings.in_bytes(setup[f"cgroup_{key}"])
                made = surroundings.make_cgroup(key, limit, setup.get("cgroup_below", False))
                self.cgroups += made
                prepared["cgroups"].append(made[0])
                if key == "memory" and setup.get("oom_kill_disable"):
                    with open(f"{made[-1]}/memory.oom_control", "w") as file:
                        file.write("1")
        prepared["tmpfs"] = [{**m, "path": self.fill(m["path"])} for m in setup.get("tmpfs", [])]
        prepared["limits"] = {k: surroundings.in_bytes(v) for k, v in setup.get("limits", {}).items()}
        prepared["user"] = setup.get("user")
        prepared["ipc"] = setup.get("ipc")
        prepared["files"] = [self.made_up(number, file) for number, file in enumerate(setup.get("files", []))]
        prepared["first"] = [self.fill(part) for part in setup.get("first", [])]
        return prepared

    def made_up(self, number, file):
        """A file of the kernel's with other content: `text`, or its own lines with some replaced (`lines`)."""
        instead = self.fill(file.get("from", f"{{scratch}}/file-{number}"))
        text = file.get("text", "")
        if "lines" in file:
            with open(file["path"]) as real:
                own = real.readlines()
            other = {name: f"{name}: {value}\n" for name, value in file["lines"].items()}
            text = "".join(other.get(line.split(":")[0], line) for line in own)
        with open(instead, "w") as out:
            out.write(text)
        return {"path": file["path"], "from": instead}

    def command(self):
        job = [self.fill(part) for part in self.case["job"]]
        if self.arguments.replaced_pythonpath:
            job = ["env", f"PYTHONPATH={self.scratch}", *job]
        options = ["--json", f"{self.scratch}/verdict.json"]
        if self.arguments.no_agent or not self.case.get("agent", True):
            options.append("--no-agent")
        # What a container does to all that is in it stands around ullage too.
        around = [self.fill(part) for part in self.case.get("around", [])]
        run = [*around, self.arguments.ullage, "run", *options, "--"]
        prepared = self.setup()
        if not any(prepared.values()):
            return [*run, *job]
        enter = [self.arguments.plain_python, "-I", "-S", ENTER, json.dumps(prepared)]
        if self.case.get("setup", {}).get("inside"):
            return [*run, *enter, *job]
        return [*enter, *run, *job]

    def environment(self):
        environment = {**os.environ, surroundings.MARK: self.token, "ULLAGE_HOME": f"{self.scratch}/home"}
        environment["HOME"] = self.scratch
        for name, value in self.case.get("setup", {}).get("environment", {}).items():
            environment[name] = self.fill(value)
        return environment

    def by_hand(self, process):
        """Waits for the job's sign, lets something happen beside it, and sends it a signal."""
        by_hand = self.case["by_hand"]
        ready = self.fill(by_hand["ready"])
        deadline = time.monotonic() + 60
        while not os.path.exists(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                return "the job did not become ready"
            time.sleep(0.05)
        if "beside" in by_hand:
            made = surroundings.make_cgroup("memory", surroundings.in_bytes(by_hand["beside_cgroup_memory"]))
            self.cgroups += made
            beside = [self.fill(part) for part in by_hand["beside"]]
            enter = [self.arguments.plain_python, "-I", "-S", ENTER, json.dumps({"cgroups": made})]
            rc = subprocess.run([*enter, *beside], capture_output=True).returncode
            if rc != -signal.SIGKILL:
                return f"the process beside it was not OOM-killed (status {rc})"
        with open(ready) as file:
            os.kill(int(file.read()), by_hand["signal"])
        return None

    def run(self):
        """(verdict or none, seconds, what went wrong)"""
        begin = time.monotonic()
        log = open(f"{self.scratch}/log", "wb")
        errors = subprocess.DEVNULL if self.arguments.discard_stderr else log
        command, job = self.command(), None
        if self.case.get("watched"):
            job = [self.fill(part) for part in self.case["job"]]
            job = subprocess.Popen(
                job, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.scratch
            )
            command = [self.arguments.ullage, "watch", str(job.pid), "--json", f"{self.scratch}/verdict.json"]
        process = subprocess.Popen(
            command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=errors,
            cwd=self.scratch,
            start_new_session=True,
        )
        wrong = []
        if "by_hand" in self.case:
            problem = self.by_hand(process)
            wrong += [problem] if problem else []
        try:
            process.wait(timeout=self.case.get("timeout", 180))
        except subprocess.TimeoutExpired:
            wrong.append(f"still running after {self.case.get('timeout', 180)} s")
            surroundings.end_marked(self.token)
            process.wait()
        if job is not None:
            job.wait()
        seconds = time.monotonic() - begin
        log.close()
        try:
            with open(f"{self.scratch}/verdict.json") as file:
                return json.load(file), seconds, wrong
        except (OSError, ValueError) as error:
            return None, seconds, [*wrong, f"no verdict: {error}"]

    def log(self):
        with open(f"{self.scratch}/log", errors="replace") as file:
            return file.read()


def run_case(case, arguments, python):
    with Case(case, arguments, python) as running:
        verdict, seconds, wrong = running.run()
        agent = not (arguments.no_agent or arguments.replaced_pythonpath)
        agent &= case.get("agent", True) and not case.get("watched", False)
        if verdict is not None:
            wrong += descriptions.differences(case, verdict, agent)
            if not arguments.discard_stderr:
                wrong += [f"screen: {fault}" for fault in screens.faults(running.log())]
        result = {
            "scenario": case["id"],
            "python": python,
            "expected": expected(case),
            "got": "-",
            "status": "-",
            "role": "-",
            "seconds": round(seconds, 1),
            "ok": not wrong,
            "wrong": wrong,
            "verdict": verdict,
            "log": running.log() if wrong else "",
        }
    if verdict is not None:
        findings = descriptions.above_note(verdict)
        result["got"] = findings[0]["cause"] if findings else "none"
        if "growth" in case:
            result["got"] = descriptions.growth_word(verdict)
        if findings:
            result["status"] = findings[0]["status"]
            result["role"] = (findings[0]["process"] or {}).get("role", "-")
        elif case["expect"].get("finding") in [u["cause"] for u in verdict["undetermined"]]:
            result["got"] = "cannot tell"
    return result


def expected(case):
    return " ".join(case["growth"]) if "growth" in case else case["expect"]["finding"] or "none"


def chosen(arguments):
    if arguments.lookalikes or arguments.origin:
        names = lookalikes.wanted(lookalikes.read()) if arguments.lookalikes else origin.wanted(origin.read())
        found = descriptions.read_scenarios() + descriptions.read_matrix()
        absent = names - {case["id"] for case in found}
        if absent:
            raise SystemExit(f"there is no scenario {min(absent)}")
        found = [case for case in found if case["id"] in names]
    elif arguments.set == "matrix":
        found = descriptions.read_matrix()
    else:
        found = descriptions.read_scenarios()
        if arguments.set == "smoke":
            found = [case for case in found if case.get("smoke")]
    return [case for case in found if fnmatch.fnmatch(case["id"], f"*{arguments.only}*")]


def print_row(result):
    ok = "ok" if result["ok"] else "WRONG"
    print(
        f"{result['scenario']:<62} {result['expected']:<32} {result['got']:<32} "
        f"{result['status']:<12} {result['role']:<16} {result['seconds']:>6}  {ok}",
        flush=True,
    )
    for sentence in result["wrong"]:
        print(f"    {sentence}", flush=True)


def print_confusion(results):
    """What was told where each cause was expected, and what all of it comes to."""
    told = collections.defaultdict(collections.Counter)
    for result in results:
        told[result["expected"]][result["got"]] += 1
    print("\nexpected -> told x times")
    for expected in sorted(told):
        words = ", ".join(f"{got} x {number}" for got, number in told[expected].most_common())
        print(f"  {expected:<34} {words}")
    right = [result for result in results if result["got"] in (result["expected"], *result["expected"].split())]
    wrong = [result for result in results if result not in right]
    sure = [result["scenario"] for result in wrong if result["status"] in ("established", "supported")]
    loud = [
        result["scenario"]
        for result in results
        if result["expected"] == "none" and result["verdict"] and descriptions.above_note(result["verdict"])
    ]
    print(f"first answer right: {len(right)} of {len(results)} ({100 * len(right) / max(1, len(results)):.1f} %)")
    print(f"wrong and said to be established or supported: {len(sure)} {' '.join(sure)}")
    print(f"above a note where nothing is expected: {len(loud)} {' '.join(loud)}")
    # Again, because of a long log often only the end is kept.
    for result in results:
        if not result["ok"]:
            print_row(result)
            for finding in (result["verdict"] or {}).get("findings", []):
                print(f"    {finding['severity']}, {finding['status']}: {finding['cause']}: {finding['title']}")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True, help="the binary to try")
    parser.add_argument("--python", action="append", help="a Python with torch; several: each runs every case")
    parser.add_argument(
        "--plain-python", default="/usr/bin/python3", help="for jobs without torch; any user may run it"
    )
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--set", choices=["smoke", "all", "matrix"], default="all")
    parser.add_argument("--lookalikes", action="store_true", help="the cases of lookalikes.toml, and each pair of them")
    parser.add_argument("--origin", action="store_true", help="the cases of origin.toml, and the page made of them")
    parser.add_argument("--write", action="store_true", help="with --origin: write the page instead of comparing it")
    parser.add_argument(
        "--guest-logs", metavar="FOLDER", help="verdicts of the cases that ran in a guest: .guest/logs/6.1"
    )
    parser.add_argument("--no-agent", action="store_true")
    parser.add_argument(
        "--replaced-pythonpath", action="store_true", help="start jobs with a PYTHONPATH that hides the agent"
    )
    parser.add_argument("--discard-stderr", action="store_true")
    parser.add_argument("--json", metavar="OUT", help="write every result, with the whole verdict")
    parser.add_argument("--logs", action="store_true", help="print what a wrong case printed")
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time")
    arguments = parser.parse_args()
    arguments.ullage = os.path.abspath(arguments.ullage)
    # Jobs run in folders of their own. Not resolved: a venv's python is a link.
    arguments.python = [os.path.abspath(python) for python in arguments.python or [sys.executable]]
    if not os.access(arguments.ullage, os.X_OK):
        parser.error(f"{arguments.ullage} is not an executable; build it with `cargo build --release -p ullage-cli`")
    if not os.access(arguments.plain_python, os.X_OK):
        arguments.plain_python = sys.executable
    return arguments


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = read_arguments()
    results, skipped, reasons = [], [], {}
    todo = []
    for python in arguments.python:
        for case in chosen(arguments):
            for need in case.get("needs", []):
                if need == "agent":
                    kept_out = arguments.no_agent or arguments.replaced_pythonpath
                    reasons[need, python] = "needs the agent, which is kept out" if kept_out else None
                if (need, python) not in reasons:
                    reasons[need, python] = surroundings.missing(need, python, arguments.plain_python, arguments.ullage)
            reason = next((reasons[n, python] for n in case.get("needs", []) if reasons[n, python]), None)
            if reason:
                skipped.append((case["id"], reason))
            else:
                todo.append((case, python))
    pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
    before = surroundings.segments()
    try:
        for result in pool.map(lambda item: run_case(item[0], arguments, item[1]), todo):
            results.append(result)
            print_row(result)
            if arguments.logs and not result["ok"]:
                print(result["log"], flush=True)
    finally:
        # Interrupted: no further case, and those under way end now and put their surroundings back.
        pool.shutdown(wait=False, cancel_futures=True)
        for token in list(Case.running):
            surroundings.end_marked(token)
        pool.shutdown(wait=True)
        surroundings.remove_torch_segments(before)
    for name, reason in skipped:
        print(f"{name:<62} skipped: {reason}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"results": results, "skipped": skipped}, file, indent=1)
    print_confusion(results)
    passed = sum(result["ok"] for result in results)
    print(f"{passed} passed, {len(results) - passed} failed, {len(skipped)} skipped")
    good = passed == len(results) and bool(results)
    if arguments.lookalikes or arguments.origin:
        good &= together(arguments, results, [name for name, _ in skipped])
    return 0 if good else 1


def together(arguments, results, skipped):
    """What the cases say of each other, or of the page: true where all of it is right."""
    verdicts = {result["scenario"]: result["verdict"] for result in results if result["verdict"]}
    for name in skipped if arguments.guest_logs else []:
        path = os.path.join(arguments.guest_logs, name.replace("/", " "), "verdict.json")
        if os.path.exists(path):
            with open(path) as file:
                verdicts[name] = json.load(file)
    if arguments.origin:
        wrong = origin.check(verdicts, arguments.write)
        print(*wrong, f"{len(verdicts)} situations run, {len(wrong)} lines of the page are not right", sep="\n")
        return not wrong
    right, wrong, missing = lookalikes.table(lookalikes.read(), verdicts)
    for name in sorted(missing):
        print(f"  not run: {name}")
    print(f"{right} pairs right, {wrong} wrong; {len(missing)} scenarios without a verdict")
    return right > 0 and not wrong


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was under way is put back")
