"""The load test: asks for reports over the server's socket, four at a time."""

import argparse
import concurrent.futures
import socket
import time


def ask(path, number):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(path)
        connection.sendall(f"GET /report/{number}\n".encode())
        answer = connection.makefile().readline()
    time.sleep(0.01)
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--requests", type=int, required=True)
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        answers = list(executor.map(lambda number: ask(options.path, number), range(options.requests)))
    failed = sum(not answer for answer in answers)
    print(f"{len(answers)} answers, {failed} failed", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
