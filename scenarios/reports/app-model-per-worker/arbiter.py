"""A pre-fork server, as gunicorn is: the arbiter opens the socket and forks workers, each of which loads the app."""

import os
import signal
import socket
import sys
import traceback

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


class Worker:
    def __init__(self, age, listener):
        self.age, self.listener = age, listener

    def init_process(self, booted):
        from app import create_app

        self.application = create_app()
        os.write(booted, b"1")
        os.close(booted)
        self.run()

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rwb") as stream:
                for line in stream:
                    stream.write(self.application(line.decode()).encode() + b"\n")
                    stream.flush()


class HaltServer(Exception):
    pass


class Arbiter:
    def __init__(self, workers):
        self.num_workers, self.workers = workers, {}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def spawn_worker(self):
        read_end, write_end = os.pipe()
        worker = Worker(len(self.workers), self.listener)
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            try:
                worker.init_process(write_end)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(write_end)
        self.workers[pid] = worker
        print(f"[{os.getpid()}] Booting worker with pid: {pid}", flush=True)
        booted = os.read(read_end, 1)
        os.close(read_end)
        self.reap_workers(os.WNOHANG if booted else 0, pid)

    def reap_workers(self, options, booting):
        for pid in list(self.workers):
            ended, status = os.waitpid(pid, options if pid == booting else os.WNOHANG)
            if ended:
                del self.workers[pid]
                self.halt(pid, status)

    def halt(self, pid, status):
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            hint = " Perhaps out of memory?" if name == "SIGKILL" else ""
            print(f"Worker (pid:{pid}) was sent {name}!{hint}", file=sys.stderr, flush=True)
        raise HaltServer("A worker exited.")

    def run(self, requests):
        code = 0
        try:
            for _ in range(self.num_workers):
                self.spawn_worker()
                self.probe(requests)
        except HaltServer as error:
            print(error, file=sys.stderr)
            code = 3
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        sys.exit(code)

    def probe(self, requests):
        with socket.create_connection(self.listener.getsockname()) as connection:
            with connection.makefile("rwb") as stream:
                for number in range(requests):
                    stream.write(b"an answer to question %d\n" % number)
                    stream.flush()
                    answer = stream.readline()
        print(f"answered {requests} requests, the last with {answer.decode().strip()}", flush=True)


if __name__ == "__main__":
    Arbiter(WORKERS).run(requests=150)
