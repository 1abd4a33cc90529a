"""The daemon: opens agent sessions, three at a time, in runners that the zygote forks for it"""

import json
import os
import selectors
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS, AT_ONCE, TURNS = 26.0, 3, 7


class ZygoteManager:
    """The daemon's end of the control socket; the zygote is started by exec, and knows nothing of the daemon"""

    def __init__(self):
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, os.path.join(HERE, "zygote.py"), str(other.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[other.fileno()], env=environment)
        other.close()
        assert self.receive()["event"] == "ready"

    def receive(self):
        data = self.control.recv(1 << 16)
        if not data:
            raise RuntimeError("the zygote is gone")
        return json.loads(data)

    def fork(self, session):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.control, [json.dumps({"do": "fork", "session": session}).encode()], [theirs.fileno()])
        theirs.close()
        return ours

    def stop(self):
        self.control.close()
        return self.process.wait()


def main():
    zygote, selector = ZygoteManager(), selectors.DefaultSelector()
    selector.register(zygote.control, selectors.EVENT_READ)
    begin, opened, ended, turns = time.monotonic(), 0, 0, {}
    while True:
        while len(turns) < AT_ONCE and time.monotonic() < begin + SECONDS:
            channel = zygote.fork(opened)
            selector.register(channel, selectors.EVENT_READ)
            channel.send(json.dumps({"prompt": f"session {opened}: read the ticket"}).encode())
            turns[channel], opened = 0, opened + 1
        if not turns and ended == opened:
            break
        for key, _ in selector.select():
            channel = key.fileobj
            if channel is zygote.control:
                event = zygote.receive()
                ended += event["event"] == "exited" and event["role"] == "runner"
                continue
            answer = json.loads(channel.recv(1 << 16))
            turns[channel] += 1
            if turns[channel] < TURNS:
                channel.send(json.dumps({"prompt": f"turn {turns[channel]} after {answer['text']}"}).encode())
            else:
                print(f"a session of {TURNS} turns ends with {answer['text']}", flush=True)
                selector.unregister(channel)
                channel.close()
                del turns[channel]
    print(f"{opened} sessions, zygote ended with {zygote.stop()}", flush=True)


if __name__ == "__main__":
    main()
