"""A server that forks its workers, and forks another one for each that ends, in the way of gunicorn"""

import os
import signal
import socket
import sys
import traceback

import config


class Halt(BaseException):
    pass


def log(text):
    print(f"[{os.getpid()}] {text}", file=sys.stderr, flush=True)


def halt(number, frame):
    raise Halt


class Arbiter:
    def __init__(self):
        self.workers = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=config.backlog)
        if config.preload_app:
            import app  # noqa: F401

    def work(self):
        log("Booting worker")
        from app import application

        while True:
            connection, _ = self.listener.accept()
            with connection:
                try:
                    connection.sendall(application(connection.recv(1 << 16)))
                except OSError:
                    log("the client has gone")

    def spawn_worker(self):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                self.work()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(3)
        self.workers.add(pid)

    def reap_worker(self):
        pid, status = os.waitpid(-1, 0)
        self.workers.discard(pid)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            log(f"Worker (pid:{pid}) was sent {name}!{' Perhaps out of memory?' if name == 'SIGKILL' else ''}")
        else:
            log(f"Worker (pid:{pid}) exited with code {os.WEXITSTATUS(status)}.")

    def run(self):
        signal.signal(signal.SIGTERM, halt)
        print(self.listener.getsockname()[1], flush=True)
        try:
            while True:
                while len(self.workers) < config.workers:
                    self.spawn_worker()
                self.reap_worker()
        except Halt:
            log("Handling signal: term")
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        for pid in self.workers:
            os.waitpid(pid, 0)


if __name__ == "__main__":
    Arbiter().run()
