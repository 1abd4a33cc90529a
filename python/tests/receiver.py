"""The other end of the agent's socket, for tests: what each process said, with the kernel's word for who it is.

Run as a program it listens, runs a command with the agent on its path, and prints one JSON object a line:
`python receiver.py -- python train.py`.
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

AGENT = pathlib.Path(__file__).resolve().parent.parent / "ullage" / "agent"


class Receiver:
    """Listens in a private directory that also holds the agent's files."""

    def __init__(self, acknowledge=True):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="ua-", dir="/tmp"))
        shutil.copy(AGENT / "sitecustomize.py", self.directory / "sitecustomize.py")
        for name in (
            "agent",
            "backlog",
            "census",
            "counts",
            "facts",
            "garbage",
            "hooks",
            "kept",
            "memory",
            "paths",
            "sites",
            "slots",
            "training",
            "weigh",
        ):
            shutil.copy(AGENT / f"{name}.py", self.directory / f"ullage_{name}.py")
        self.path = str(self.directory / "agent")
        self.acknowledge = acknowledge
        self.messages = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.listener.bind(self.path)
        self.listener.listen(128)
        self._stop_r, self._stop_w = os.pipe()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        poll = select.epoll()
        poll.register(self.listener, select.EPOLLIN)
        poll.register(self._stop_r, select.EPOLLIN)
        peers = {}
        stopping = False
        while True:
            ready = poll.poll(0 if stopping else -1)
            if stopping and not ready:
                break
            for fd, _ in ready:
                if fd == self._stop_r:
                    poll.unregister(fd)
                    stopping = True
                elif fd == self.listener.fileno():
                    peer, _ = self.listener.accept()
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    peer.setblocking(False)
                    peers[peer.fileno()] = peer
                    poll.register(peer, select.EPOLLIN)
                elif not self._receive(peers[fd]):
                    poll.unregister(fd)
                    peers.pop(fd).close()
        for peer in peers.values():
            peer.close()
        poll.close()

    def _receive(self, peer):
        try:
            data, ancillary, _, _ = peer.recvmsg(1 << 20, socket.CMSG_SPACE(12))
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        pid = None
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                pid = struct.unpack("3i", value)[0]
        message = json.loads(data.decode("utf-8"))
        message["pid"] = pid
        self.messages.append(message)
        if message["kind"] == "exception" and self.acknowledge:
            with contextlib.suppress(OSError):
                peer.send(b"\1")
        return True

    def close(self):
        os.write(self._stop_w, b"x")
        self._thread.join()
        self.listener.close()
        os.close(self._stop_r)
        os.close(self._stop_w)
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self, base=None):
        """The variables that `ullage run` sets."""
        environment = dict(os.environ if base is None else base)
        before = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{self.directory}:{before}" if before else str(self.directory)
        environment["ULLAGE_AGENT_SOCKET"] = self.path
        return environment

    def of(self, kind):
        return [message for message in self.messages if message["kind"] == kind]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def watched(command, *, acknowledge=True, env=None, **kwargs):
    """Runs a command to its end with the agent; the finished process and what was said."""
    with Receiver(acknowledge) as receiver:
        done = subprocess.run(
            command, env=receiver.environment(env), stdin=subprocess.DEVNULL, capture_output=True, check=False, **kwargs
        )
    return done, receiver


if __name__ == "__main__":
    with Receiver() as heard:
        status = subprocess.run(sys.argv[2:], env=heard.environment(), check=False).returncode
    for said in heard.messages:
        print(json.dumps(said))
    sys.exit(status if status >= 0 else 128 - status)
