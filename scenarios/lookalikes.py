"""Pairs of causes that look alike: was the scenario of the one called that, and not the other, in both directions?

The groups stand in lookalikes.toml. Every member of a group is laid beside every other that is called otherwise.
"""

import itertools
import os

from cases import HERE, above_note, growth_word, tomllib


def read():
    with open(os.path.join(HERE, "lookalikes.toml"), "rb") as file:
        return tomllib.load(file)["group"]


def wanted(groups):
    return {member["case"] for group in groups for member in group["member"]}


def called(verdict):
    """The causes above a note, first one first, and the word for the growth."""
    return [finding["cause"] for finding in above_note(verdict)], growth_word(verdict)


def is_called(member, verdict):
    """The first cause, and the growth, are those of this member."""
    causes, growth = called(verdict)
    right = "cause" not in member or (causes[0] if causes else "") == member["cause"]
    return right and ("growth" not in member or growth in member["growth"])


def is_mentioned(member, verdict):
    """Something that only this member would be called stands in the verdict."""
    causes, growth = called(verdict)
    return bool(member.get("cause")) and member["cause"] in causes or growth in member.get("growth", [])


def directions(group):
    """(member, the other) for each ordered pair that is called differently."""
    for one, other in itertools.permutations(group["member"], 2):
        if (one.get("cause"), one.get("growth")) != (other.get("cause"), other.get("growth")):
            yield one, other


def table(groups, verdicts):
    """Prints each pair; how many were right, how many wrong, and which scenarios have no verdict."""
    right, wrong, missing = 0, 0, set()
    for group in groups:
        print(f"\n{group['looks']}")
        for one, other in directions(group):
            verdict = verdicts.get(one["case"])
            if verdict is None:
                missing.add(one["case"])
                continue
            causes, growth = called(verdict)
            said = ", ".join(causes) or "no finding"
            said += f" ({growth})" if "growth" in one or "growth" in other else ""
            ok = is_called(one, verdict) and not is_mentioned(other, verdict)
            right, wrong = right + ok, wrong + (not ok)
            print(f"  {'ok   ' if ok else 'WRONG'} {one['what']}, not {other['what']}: {said}")
    return right, wrong, missing
