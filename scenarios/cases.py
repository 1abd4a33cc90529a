"""Reads scenario.toml files and the matrix into cases, and says whether a verdict is the expected one."""

import os

try:
    import tomllib
except ImportError:  # before Python 3.11; every venv with pip has this copy
    from pip._vendor import tomli as tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
CAUSES = os.path.join(os.path.dirname(HERE), "crates", "observe", "diagnosis", "causes")
KNOWN = {
    "name",
    "job",
    "needs",
    "setup",
    "expect",
    "healthy",
    "fix",
    "smoke",
    "by_hand",
    "timeout",
    "notes",
    "constructed",
    "growth",
    "agent",
    "around",
    "watched",
}
KNOWN_SETUP = {
    "inside",
    "tmpfs",
    "cgroup_memory",
    "cgroup_below",
    "cgroup_pids",
    "cgroup_cpu",
    "cgroup_memory_high",
    "neighbour",
    "first",
    "ipc",
    "limits",
    "user",
    "environment",
    "files",
    "oom_group",
    "oom_kill_disable",
    "sysctl",
    "swap",
}
KNOWN_EXPECT = {"finding", "also", "status", "status_without_agent", "role", "outcome", "by_report"}
RANK = {"note": 0, "warning": 1, "fatal": 2}


def check_keys(path, where, given, known):
    unknown = set(given) - known
    if unknown:
        raise SystemExit(f"{path}: {where}: unknown key {min(unknown)!r}; known: {', '.join(sorted(known))}")


def folders():
    """Name and folder of each scenario: in the folder of its cause, or beside this file where it is no cause's."""
    found = [(name, os.path.join(HERE, name)) for name in os.listdir(HERE)]
    found += [(cause, os.path.join(CAUSES, cause, "scenario")) for cause in os.listdir(CAUSES)]
    return sorted(one for one in found if os.path.exists(os.path.join(one[1], "scenario.toml")))


def read_scenarios():
    cases = []
    for name, folder in folders():
        path = os.path.join(folder, "scenario.toml")
        with open(path, "rb") as file:
            content = tomllib.load(file)
        for case in content["case"]:
            check_keys(path, case.get("name", "case"), case, KNOWN)
            check_keys(path, case["name"], case.get("setup", {}), KNOWN_SETUP)
            check_keys(path, case["name"], case.get("expect", {}), KNOWN_EXPECT)
            if case.get("setup", {}).get("files") and not case.get("constructed"):
                raise SystemExit(f"{path}: {case['name']}: files are made up, and `constructed` does not say so")
            if case.get("healthy"):
                healthy = {"finding": "", "outcome": {"kind": "exit", "code": 0}}
                case["expect"] = {**healthy, **case.get("expect", {})}
            cases.append({**case, "id": f"{name}/{case['name']}", "here": folder})
    return cases


def read_matrix():
    with open(os.path.join(HERE, "matrix", "expected.toml"), "rb") as file:
        content = tomllib.load(file)
    cases = []
    for row in content["row"]:
        for nofile in content["nofile"]:
            expected = row["expect"] if isinstance(row["expect"], str) else row["expect"][str(nofile)]
            healthy = expected == ""
            case = {
                "id": f"matrix/{row['start_method']}-{row['strategy']}-{row['tensors']}-nofile-{nofile}",
                "here": os.path.join(HERE, "matrix"),
                "job": [
                    "{python}",
                    "{here}/job.py",
                    "--start-method",
                    row["start_method"],
                    "--strategy",
                    row["strategy"],
                    "--tensors",
                    str(row["tensors"]),
                ],
                "needs": ["torch", "max-map-count-65530", f"nofile-{nofile}"],
                "setup": {"limits": {"nofile": nofile}},
                "healthy": healthy,
                "expect": {"finding": expected, "outcome": {"kind": "exit", "code": 0 if healthy else 1}},
            }
            if not healthy:
                case["expect"]["role"] = ["trainer"]
                case["expect"]["status"] = ["established", "supported"]
            cases.append(case)
    return cases


def above_note(verdict):
    return [f for f in verdict["findings"] if RANK[f["severity"]] > 0]


def growth_word(verdict):
    """Its word; of a run that was too short there is none."""
    return verdict["growth"].get("class", "not told")


def differences(case, verdict, agent):
    """What is wrong with the verdict, one sentence each. Without the agent, "cannot tell" is a right answer."""
    expect, wrong = case["expect"], []
    if verdict.get("schema") != 1:
        wrong.append(f"schema is {verdict.get('schema')!r}")
    findings = above_note(verdict)
    got = findings[0]["cause"] if findings else ""
    wanted = expect.get("finding")
    undetermined = [u["cause"] for u in verdict["undetermined"]]
    # Growth that only the agent can name is told as such.
    named = [finding for finding in findings if finding["cause"] != "unnamed-growth"]
    open_question = not agent and not named and wanted in undetermined
    if wanted is None:
        pass  # the growth is judged
    elif open_question:
        pass
    elif got != wanted:
        wrong.append(f"first finding is {got or 'none'}")
    elif findings and wanted:
        first = findings[0]
        allowed = expect.get("status", ["established", "supported", "hypothesis"])
        if not agent:
            allowed = expect.get("status_without_agent", ["established", "supported", "hypothesis"])
        if first["status"] not in allowed:
            wrong.append(f"status is {first['status']}, not {' or '.join(allowed)}")
        role = (first["process"] or {}).get("role")
        if agent and "role" in expect and not any((role or "").startswith(r) for r in expect["role"]):
            wrong.append(f"role is {role}, not {' or '.join(expect['role'])}")
        if not first["evidence"]:
            wrong.append("the finding has no evidence")
        if not first["fixes"]:
            wrong.append("the finding has no fix")
    among = verdict["findings"] if wanted == "" else findings  # of a healthy one, its notes
    for cause in expect.get("also", []):
        if cause not in [finding["cause"] for finding in among]:
            wrong.append(f"{cause} is not among the findings")
    if agent and "notes" in case:
        notes = sorted(f["cause"] for f in verdict["findings"] if RANK[f["severity"]] == 0)
        if notes != sorted(case["notes"]):
            wrong.append(f"notes are {', '.join(notes) or 'none'}")
    if agent and "growth" in case and growth_word(verdict) not in case["growth"]:
        wrong.append(f"the growth is {verdict['growth']}, not {' or '.join(case['growth'])}")
    for key, value in expect.get("outcome", {}).items():
        if verdict["outcome"].get(key) != value:
            wrong.append(f"outcome {key} is {verdict['outcome'].get(key)!r}, not {value!r}")
    if case.get("healthy") and not verdict["healthy"]:
        wrong.append("healthy is false")
    judged = wanted is not None and "growth" not in case
    if judged and not case.get("healthy") and verdict["healthy"] and not open_question:
        wrong.append("healthy is true")
    return wrong
