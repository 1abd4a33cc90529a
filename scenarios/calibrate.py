#!/usr/bin/env python3
"""How often is a first finding right, by the kind of its proof? Reads what `run.py --json OUT` wrote, and prints a table.

    calibrate.py OUT [OUT ...]

A first finding is the first above a note. It is right where it is the cause that the scenario expects. The last column is
Laplace's: (right + 1) / (findings + 2), so that few of a kind never make it certain.
"""

import collections
import json
import sys

from cases import above_note


def count(results):
    """By kind of proof: how many first findings there are, and how many of them are right."""
    found, right = collections.Counter(), collections.Counter()
    for result in results:
        findings = above_note(result["verdict"]) if result["verdict"] else []
        # Of a case that is about the kind of growth, the finding was not judged.
        if findings and findings[0]["cause"] == result["got"]:
            proof = findings[0]["proof"]
            found[proof] += 1
            right[proof] += findings[0]["cause"] in result["expected"].split()
    return {proof: (found[proof], right[proof]) for proof in found}


def table(counted):
    share = {proof: (right + 1) / (found + 2) for proof, (found, right) in counted.items()}
    lines = ["| proof | first findings | right | share |", "|---|---|---|---|"]
    for proof in sorted(counted, key=lambda proof: (-share[proof], proof)):
        found, right = counted[proof]
        lines.append(f"| `{proof}` | {found} | {right} | {share[proof]:.3f} |")
    return "\n".join(lines)


def main(paths):
    results = []
    for path in paths:
        with open(path) as file:
            results += json.load(file)["results"]
    print(table(count(results)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
