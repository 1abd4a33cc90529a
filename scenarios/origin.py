"""The page docs/guide/origin.md: what a forum thread and an article describe, and what ullage says of each.

Its table is made of origin.toml and of verdicts, between two marks; the rest of the page is written by hand. A
situation whose scenario has not been run keeps the line that it has.
"""

import os
import re

from cases import HERE, above_note, growth_word, read_scenarios, tomllib

PAGE = os.path.join(os.path.dirname(HERE), "docs", "guide", "origin.md")
BEGIN, END = "<!-- table: scenarios/run.py --origin -->", "<!-- end of table -->"


def read():
    with open(os.path.join(HERE, "origin.toml"), "rb") as file:
        return tomllib.load(file)["situation"]


def wanted(situations):
    return {situation["case"] for situation in situations}


def said(verdict, grows):
    """As the verdict has it: the first cause with its title and how certain it is, or that there is none.

    The word for the growth stands where the scenario judges it: that of a job of a few seconds is its start's.
    """
    findings = above_note(verdict)
    if findings:
        first = findings[0]
        return f"{first['title']} (`{first['cause']}`, {first['status']})"
    word = "healthy" if verdict["healthy"] else "no finding"
    return f"{word}; growth: `{growth_word(verdict)}`" if grows else word


def to_do(situation, verdict):
    findings = above_note(verdict)
    if not findings:
        return situation["do"]
    # A fix may hold the path of the run's own interpreter or script: the title says what to do.
    return findings[0]["fixes"][0]["title"]


def row(situation, verdict, grows):
    cells = [situation["words"], f"`{situation['case']}`", said(verdict, grows), to_do(situation, verdict)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def check(verdicts, write):
    """Compares the page's rows with the verdicts, or writes them; the sentences on what is not as it should be."""
    with open(PAGE) as file:
        before, _, rest = file.read().partition(BEGIN)
    old, _, after = rest.partition(END)
    there = {}
    for line in old.splitlines():
        found = re.search(r"\| `([^`]+)` \|", line)
        if found:
            there[found.group(1)] = line
    grow = {case["id"] for case in read_scenarios() if "growth" in case}
    rows, wrong = [], []
    for situation in read():
        case = situation["case"]
        if case in verdicts:
            rows.append(row(situation, verdicts[case], case in grow))
            if there.get(case) != rows[-1]:
                wrong.append(f"{case}: the page has another line than\n    {rows[-1]}")
        elif case in there:
            rows.append(there[case])
        else:
            wrong.append(f"{case}: was not run, and is not on the page")
    if not write:
        return wrong
    lines = ["| what happens | scenario | ullage says | what to do first |", "|---|---|---|---|", *rows]
    with open(PAGE, "w") as file:
        file.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)
    return [sentence for sentence in wrong if "was not run" in sentence]
