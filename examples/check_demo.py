"""Holds the verdict of examples/crash.py to what is known of that crash."""

import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        verdict = json.load(file)
    problems = []

    def expect(what, found, wanted):
        if found != wanted:
            problems.append(f"{what} is {found!r}, not {wanted!r}")

    findings = verdict["findings"]
    first = findings[0] if findings else {}
    process = first.get("process") or {}
    expect("the first finding", first.get("cause"), "max-map-count-exhausted")
    expect("its status", first.get("status"), "established")
    expect("the role of its process", process.get("role"), "trainer")
    expect("healthy", verdict["healthy"], False)
    if not (process.get("pid") and process.get("start")):
        problems.append(f"its process has no pid and start time: {process}")
    counted = [e for e in first.get("evidence", []) if e.get("unit") == "mappings" and isinstance(e.get("limit"), int)]
    if not any(abs(e["value"] - e["limit"]) <= e["limit"] // 100 for e in counted if isinstance(e["value"], int)):
        problems.append("no evidence counts the mappings at their limit")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"demo: the first finding is {first['cause']}, {first['status']}, in the {process['role']} as it was to be")


if __name__ == "__main__":
    main()
