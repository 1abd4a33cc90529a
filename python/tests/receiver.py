"""The other end of the agent's socket, for tests: what each process said, with the kernel's word for who it is.

A program under test goes on until the receiver has heard enough: it asks `heard()` (HEARD below), which is true once
the condition that the test gave holds for the messages so far. So no test says for how many seconds a program runs.

Run as a program it listens, runs a command with the agent on its path, and prints one JSON object a line:
`python receiver.py -- python train.py`.
"""

import atexit
import contextlib
import functools
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
AT_MOST_S = 600  # for a program whose condition never comes true: only a failure takes so long

# For the head of a program: whether the condition of this number holds. Nothing in it is a moment at which the agent looks.
HEARD = """
import os
def heard(number=0):
    return os.path.exists(os.environ["ULLAGE_TEST_HEARD"] + str(number))
"""


@functools.cache
def library():
    """The agent's library, as the installed command writes it beside the agent's files."""
    place = tempfile.mkdtemp(prefix="ullage-library-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    command = pathlib.Path(sys.executable).parent / "ullage"
    copy = f'cp "${{PYTHONPATH%%:*}}/ullage_native.so" {place}'
    subprocess.run([command, "run", "-q", "--record", f"{place}/run", "--", "sh", "-c", copy], check=True)
    return pathlib.Path(place) / "ullage_native.so"


class Receiver:
    """Listens in a private directory that also holds the agent's files."""

    def __init__(self, acknowledge=True, until=()):
        """`until`: a condition of the messages so far, or several: `heard(n)` is true from when the n-th holds."""
        self._until = dict(enumerate([until] if callable(until) else until))
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="ua-", dir="/tmp"))
        for file in AGENT.glob("*.py"):
            name = file.name if file.name == "sitecustomize.py" else f"ullage_{file.name}"
            shutil.copy(file, self.directory / name)
        shutil.copy(library(), self.directory / "ullage_native.so")
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
        for number in [number for number, holds in self._until.items() if holds(self.messages)]:
            (self.directory / f"heard{number}").touch()
            del self._until[number]
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
        environment["ULLAGE_TEST_HEARD"] = str(self.directory / "heard")
        return environment

    def of(self, kind):
        return [message for message in self.messages if message["kind"] == kind]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def watched(command, *, acknowledge=True, until=(), env=None, **kwargs):
    """Runs a command to its end with the agent; the finished process and what was said."""
    with Receiver(acknowledge, until) as receiver:
        done = subprocess.run(
            command,
            env=receiver.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=AT_MOST_S,
            **kwargs,
        )
    return done, receiver


def place_of(words, program):
    """Where a program of the `script` fixture says this, as the agent names it."""
    number = next(number for number, line in enumerate(program.split("\n"), 1) if words in line)
    return f"program.py:{number}"


def several(number, kind, **content):
    """The condition that so many messages were of this kind and content; content that is a function is asked."""

    def holds(messages):
        return number <= sum(
            message["kind"] == kind
            and all(
                key in message and (value(message[key]) if callable(value) else message[key] == value)
                for key, value in content.items()
            )
            for message in messages
        )

    return holds


if __name__ == "__main__":
    with Receiver() as heard:
        status = subprocess.run(sys.argv[2:], env=heard.environment(), check=False).returncode
    for said in heard.messages:
        print(json.dumps(said))
    sys.exit(status if status >= 0 else 128 - status)
