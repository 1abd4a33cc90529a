"""Symbolic tests: assertions become queries, and queries go to solver processes"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SECONDS = 60.0


class SolverProcess:
    """One query in a process of its own"""

    def __init__(self, command, path, timeout):
        self.command, self.path, self.timeout = command, path, timeout
        self.process = None
        self.result = "unknown"
        self.elapsed = 0.0

    def run(self):
        started = time.monotonic()
        self.process = subprocess.Popen(
            [*self.command, self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            output, _ = self.process.communicate(timeout=self.timeout)
            self.result = output.split("\n", 1)[0] or "error"
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.result = "timeout"
        self.elapsed = time.monotonic() - started
        return self.result


class Prover:
    def __init__(self, command, timeout, threads, folder):
        self.command, self.timeout, self.folder = command, timeout, folder
        self.executor = ThreadPoolExecutor(threads)
        self.threads = threads
        self.queries = []

    def dump(self, test, path_id, digits):
        path = os.path.join(self.folder, f"{test}-{path_id}.smt2")
        with open(path, "w") as file:
            file.write(f"assert {digits} {test}-{path_id}\n")
        return path

    def check(self, test, paths):
        """The results of the paths of a test, as many at once as there are threads"""
        found = []
        for start in range(0, len(paths), self.threads):
            futures = []
            for path_id in paths[start : start + self.threads]:
                digits = 8 if path_id % 6 else 2
                query = SolverProcess(self.command, self.dump(test, path_id, digits), self.timeout)
                self.queries.append(query)
                futures.append(self.executor.submit(query.run))
            found.extend(future.result() for future in futures)
        return found

    def report(self):
        slowest = sorted(self.queries, key=lambda query: query.elapsed)[-3:]
        for query in slowest:
            print(f"{os.path.basename(query.path)}: {query.result} in {query.elapsed:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--solver-timeout-assertion", type=int, default=1000)
    parser.add_argument("--solver-threads", type=int, default=2)
    arguments = parser.parse_args()
    folder = os.path.abspath("smt2")
    os.makedirs(folder, exist_ok=True)
    command = shlex.split(os.environ["HALMOS_SOLVER"])
    prover = Prover(command, arguments.solver_timeout_assertion / 1000, arguments.solver_threads, folder)
    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        number += 1
        found = prover.check(f"check_invariant_{number}", range(12))
        print(f"test {number}: {found.count('sat')} sat, {found.count('timeout')} timeouts", flush=True)
    prover.report()


if __name__ == "__main__":
    sys.exit(main())
