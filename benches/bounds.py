"""What the measurements share: figures beside their bounds, a user without rights, the CPU time of another process."""

import os
import random
import time


class Checks:
    """Prints each figure beside its bound, and counts."""

    def __init__(self):
        self.met = self.missed = 0

    def at_most(self, what, figure, bound, unit=""):
        self.say(what, figure, "at most", bound, unit, figure <= bound)

    def at_least(self, what, figure, bound, unit=""):
        self.say(what, figure, "at least", bound, unit, figure >= bound)

    def say(self, what, figure, word, bound, unit, fine):
        self.tell(f"{what}: {figure:.4g}{unit} (bound: {word} {bound:.4g}{unit})", fine)

    def tell(self, what, fine):
        """Counts what was compared in another way."""
        self.met, self.missed = self.met + bool(fine), self.missed + (not fine)
        print(f"  {what} {'met' if fine else 'MISSED'}", flush=True)

    def not_run(self, what, because):
        """A figure that was to be taken and was not counts as missed."""
        self.missed += 1
        print(f"  {what}: not measured, {because}: MISSED", flush=True)

    def end(self):
        print(f"{self.met} figures met their bound, {self.missed} did not", flush=True)
        return 0 if self.missed == 0 and self.met > 0 else 1


def by_chance(pairs):
    """Chance of so large a sum of (watched - not watched), or larger, where it is chance which of two is which."""
    differences = [watched - plain for watched, plain in pairs]
    coins, tries = random.Random(1), 20_000
    sums = (sum(coins.choice((-1, 1)) * difference for difference in differences) for _ in range(tries))
    return sum(total >= sum(differences) for total in sums) / tries


def without_rights():
    """Arguments of Popen that make a process of root's run as nobody; nothing for any other user."""
    nobody = 65534
    return {"user": nobody, "group": nobody, "extra_groups": []} if os.geteuid() == 0 else {}


def cpu_seconds(pid):
    """CPU time of a process without its children, by its clock (as clock_getcpuclockid(3) names it)."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
