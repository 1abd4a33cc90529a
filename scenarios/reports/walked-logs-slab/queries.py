"""Asks the log store one question after the other"""

import argparse
import http.client
import itertools
import json
import time

TEXTS = ("ERROR", "checksum 0", "is planned", "part 7")


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    began, texts = time.monotonic(), itertools.cycle(TEXTS)
    for number in itertools.count(1):
        text = next(texts)
        found = ask(arguments.port, f"/logs?contains={text.replace(' ', '+')}")
        if number % 8 == 0:
            print(f"{text}: {found['matches']} lines, {found['files']} files", flush=True)
        if time.monotonic() - began >= arguments.seconds:
            break
    ask(arguments.port, "/quit")


if __name__ == "__main__":
    main()
