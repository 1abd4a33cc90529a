"""Starts the agent for the features of a slide, and reports its progress"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run_worker(slide, progress, started):
    log = os.path.abspath(f"{slide}.log")
    with open(log, "wb") as output:
        agent = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "agent.py"), "2", slide, started],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    with open(progress, "w") as report:
        while True:
            try:
                return agent.wait(timeout=0.6)
            except subprocess.TimeoutExpired:
                report.write(f"{slide}: {os.path.getsize(log)} bytes of log\n")
                report.flush()


if __name__ == "__main__":
    sys.exit(run_worker(*sys.argv[1:4]))
