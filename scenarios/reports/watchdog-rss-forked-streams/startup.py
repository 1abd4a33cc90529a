"""The wrapper of a grid job: runs a step, passes its log on and looks after the step on the way"""

import argparse
import os
import select
import signal
import subprocess
import sys
import time

POLL_S = 1.5
EXCEEDED_RSS = 50660
PAGE = os.sysconf("SC_PAGE_SIZE")


class PerformanceMonitor:
    """Compares the memory of a step's processes with what the workflow requested"""

    def __init__(self, step, max_rss):
        self.step, self.max_rss = step, max_rss
        self.attempts = 0

    def rss(self):
        total = 0
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.step:
                total += int(fields[21]) * PAGE
        return total >> 20

    def periodic_update(self):
        rss = self.rss()
        print(f"PerformanceMonitor: RSS: {rss}", flush=True)
        if rss < self.max_rss:
            return
        print("PerformanceMonitor: Error in CMSSW step cmsRun1", flush=True)
        print(f"Job has exceeded maxRSS: {self.max_rss}\nJob has RSS: {rss}", flush=True)
        if self.attempts == 0:
            print("PerformanceMonitor: Attempting to kill step using SIGUSR2", flush=True)
            os.kill(self.step, signal.SIGUSR2)
        else:
            print("PerformanceMonitor: Attempting to kill step using SIGKILL", flush=True)
            os.killpg(self.step, signal.SIGKILL)
        self.attempts += 1


def run(command, max_rss):
    """The exit code of the step, and what its monitor did"""
    step = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    monitor = PerformanceMonitor(step.pid, max_rss)
    output, due = step.stdout.fileno(), time.monotonic() + POLL_S
    while True:
        ready, _, _ = select.select([output], [], [], max(0.0, due - time.monotonic()))
        if ready:
            data = os.read(output, 65536)
            if not data:
                break
            sys.stdout.write(data.decode(errors="replace"))
            sys.stdout.flush()
        if time.monotonic() >= due:
            monitor.periodic_update()
            due = time.monotonic() + POLL_S
    return step.wait(), monitor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-rss", type=int, required=True, help="MiB")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    code, monitor = run(arguments.command, arguments.max_rss)
    if monitor.attempts:
        print(f"cmsRun1 failed: exit code {EXCEEDED_RSS}, signal {-code}", flush=True)
        return EXCEEDED_RSS % 256
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
