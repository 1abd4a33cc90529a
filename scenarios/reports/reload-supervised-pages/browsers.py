"""Browsers that open the heavy page, look at it for some seconds and close it; now and then one asks for a snapshot"""

import collections
import json
import socket
import sys
import time

RUN_S, STEP_S, OPEN = 27.0, 0.75, 5


class Browser:
    def __init__(self, port, path):
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.connection.sendall(f"{path}\n".encode())
        with self.connection.makefile("rb") as stream:
            self.page = stream.readline()

    def look(self):
        elements = json.loads(self.page)
        return sum(len(element["props"]["text"]) for element in elements), elements[1]["props"]["text"]

    def close(self):
        self.connection.close()


def main():
    port, begin = int(sys.argv[1]), time.monotonic()
    browsers, opened = collections.deque(), 0
    while time.monotonic() < begin + RUN_S:
        until = time.monotonic() + STEP_S
        opened += 1
        if opened in (9, 24):
            browser = Browser(port, "/snapshot")
            print(f"page {opened}: {browser.look()[1]}", flush=True)
            browser.close()
        else:
            browsers.append(Browser(port, "/heavy"))
        if len(browsers) > OPEN:
            browsers.popleft().close()
        while time.monotonic() < until:
            browsers[-1].look()
    for browser in browsers:
        browser.close()
    print(f"{opened} pages", flush=True)


if __name__ == "__main__":
    main()
