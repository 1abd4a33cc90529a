"""A runner: one session; hands each turn to a harness, which it has the zygote fork"""

import json
import socket


def main(channel, link):
    harness, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(link, [json.dumps({"do": "fork_harness"}).encode()], [theirs.fileno()])
    theirs.close()
    history = []
    while data := channel.recv(1 << 16):
        history.append(json.loads(data)["prompt"])
        harness.send(json.dumps({"prompt": history[-1], "turns": len(history)}).encode())
        answer = harness.recv(1 << 16)
        if not answer:
            raise RuntimeError("the harness is gone")
        channel.send(answer)
    harness.close()
