"""Starts the database, its exporter and a benchmark, and scrapes the exporter when the benchmark reports"""

import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def start(script, *arguments):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, os.path.join(HERE, script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def scrape(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /metrics\n")
        return connection.makefile().read().strip()


def main():
    database = start("postmaster.py")
    port = database.stdout.readline().strip()
    exporter = start("exporter.py", str(database.pid))
    metrics_port = int(exporter.stdout.readline())
    bench = start("bench.py", port)
    for line in bench.stdout:
        print(f"{line.strip()}; {scrape(metrics_port)}", flush=True)
    status = bench.wait()
    for process in (exporter, database):
        process.terminate()
        process.wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
