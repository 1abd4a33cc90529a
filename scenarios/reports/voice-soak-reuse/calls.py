"""The load: calls start one after the other, are held, and all hang up; and once more"""

import array
import json
import random
import select
import socket
import sys
import time

CALLS, LOADS, START_S, HOLD_S, DRAINED_S, FRAME_S = 40, 2, 0.25, 2.5, 1.0, 0.05


class Control:
    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def ask(self, **request):
        self.stream.write(json.dumps(request).encode() + b"\n")
        self.stream.flush()
        return json.loads(self.stream.readline())


class Caller:
    def __init__(self, control, source):
        self.control = control
        answer = control.ask(method="INVITE")
        self.port, self.length = answer["port"], answer["frame"]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", self.port))
        self.voice = array.array("h", [source.randrange(-9000, 9000) for _ in range(4 * self.length)])
        self.sent, self.heard = 0, 0

    def fileno(self):
        return self.socket.fileno()

    def speak(self):
        at = self.sent * 97 % (3 * self.length)
        self.socket.send(self.voice[at : at + self.length].tobytes())
        self.sent += 1

    def hear(self):
        self.heard += len(self.socket.recv(1 << 12)) > 2 * self.length

    def hang_up(self):
        self.control.ask(method="BYE", port=self.port)
        self.socket.close()


def talk(callers, until):
    """Each caller speaks a frame, and hears what comes back until the next is due"""
    for caller in callers:
        caller.speak()
    while (left := until - time.monotonic()) > 0:
        for caller in select.select(callers, [], [], left)[0]:
            caller.hear()


def load(control, source):
    callers, begin, frames = [], time.monotonic(), 0
    while (now := time.monotonic() - begin) < CALLS * START_S + HOLD_S:
        if len(callers) < min(CALLS, 1 + int(now / START_S)):
            callers.append(Caller(control, source))
        frames += 1
        talk(callers, begin + frames * FRAME_S)
    heard, sent = sum(caller.heard for caller in callers), sum(caller.sent for caller in callers)
    for caller in callers:
        caller.hang_up()
    return f"{len(callers)} calls, {heard} of {sent} frames heard"


def main():
    control, source = Control(int(sys.argv[1])), random.Random(2)
    for number in range(LOADS):
        print(f"load {number}: {load(control, source)}", flush=True)
        talk([], time.monotonic() + DRAINED_S)


if __name__ == "__main__":
    main()
