"""The list that @case fills. Cases run in the order in which they are written."""

from dataclasses import dataclass
from typing import Callable

CASES = []


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable
    needs_ullage: bool


def case(name, needs_ullage=False):
    def register(function):
        CASES.append(Case(name, function, needs_ullage))
        return function

    return register
