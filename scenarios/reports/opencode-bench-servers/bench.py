"""A benchmark of coding agents: each task runs the agent's command, and then the tests of what it has written"""

import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS, TASK_S, TIMEOUT_S = 12, 2.2, 30


def run_agent(state, prompt):
    command = [sys.executable, os.path.join(HERE, "agent.py"), state, prompt]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return json.loads(done.stdout)


def run_tests(code, name, source):
    values = [source.randrange(1000) for _ in range(50)]
    test = f"{code}\nassert {name}({values}) == {max(values)}\n"
    return subprocess.run([sys.executable, "-c", test], stdin=subprocess.DEVNULL).returncode == 0


def style(code, until):
    """The score for how it reads: how often its pieces come up in a corpus of other answers"""
    source, score = random.Random(len(code)), 0
    while time.monotonic() < until:
        other = "".join(source.choices(code, k=400))
        score += sum(other.count(code[at : at + 3]) for at in range(len(code) - 3))
    return score % 100


def main():
    state, source = sys.argv[1], random.Random(3)
    begin, passed = time.monotonic(), 0
    for number in range(TASKS):
        name = f"largest_{number}"
        answer = run_agent(state, f"write a function that returns the largest of its values: {name}")
        right = run_tests(answer["code"], name, source)
        passed += right
        score = style(answer["code"], begin + (number + 1) * TASK_S)
        print(f"task {number}: {'passed' if right else 'failed'}, style {score}", flush=True)
    print(f"{passed} of {TASKS} passed", flush=True)
    return passed != TASKS


if __name__ == "__main__":
    sys.exit(main())
