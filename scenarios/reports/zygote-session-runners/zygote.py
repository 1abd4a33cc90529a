"""The zygote: imports everything once, and forks runners and harnesses that share it"""

import gc
import json
import os
import selectors
import signal
import socket
import sys

import harness
import runner


class Zygote:
    def __init__(self, control):
        self.control, self.roles = control, {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ)
        # One thread and no event loop; a child that ends wakes the selector
        self.wakeup, self.wakeup_end = socket.socketpair()
        self.wakeup_end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakeup_end.fileno())
        self.selector.register(self.wakeup, selectors.EVENT_READ)

    def send(self, **event):
        self.control.send(json.dumps(event).encode())

    def fork(self, role, main, *arguments):
        pid = os.fork()
        if pid:
            self.roles[pid] = role
            return
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for key in list(self.selector.get_map().values()):
                key.fileobj.close()
            main(*arguments)
            status = 0
        finally:
            os._exit(status)

    def reap(self):
        self.wakeup.recv(4096)
        while self.roles:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            self.send(event="exited", role=self.roles.pop(pid), status=os.waitstatus_to_exitcode(status))

    def handle(self, connection):
        """A request, with the socket that the new process is to talk on; false at the end"""
        data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        if not data:
            return False
        request, channel = json.loads(data), socket.socket(fileno=descriptors[0])
        if request["do"] == "fork":
            link, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.selector.register(link, selectors.EVENT_READ)
            self.fork("runner", runner.main, channel, end)
            end.close()
        else:
            self.fork("harness", harness.main, channel)
        channel.close()
        return True

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.wakeup:
                    self.reap()
                elif not self.handle(key.fileobj):
                    if key.fileobj is self.control:
                        return
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    harness.prepare()
    gc.collect()
    gc.freeze()
    zygote = Zygote(control)
    zygote.send(event="ready")
    zygote.serve()


if __name__ == "__main__":
    main()
