"""A worker of the queue: a pool of forked processes, each with a thread that takes tasks for it"""

import json
import multiprocessing
import multiprocessing.connection
import signal
import socket
import sys
import threading

import losses

context = multiprocessing.get_context("fork")
forking = threading.Lock()


class Channel:
    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.answers = self.connection.makefile()

    def ask(self, op, **arguments):
        self.connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
        line = self.answers.readline()
        if not line:
            raise ConnectionError("the broker is gone")
        return json.loads(line)


def process_loop(pipe):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        task = pipe.recv()
        pipe.send(losses.generate(task["chunk"], task["regions"]))


class Slot(threading.Thread):
    def __init__(self, number, port):
        super().__init__(name=f"ForkPoolWorker-{number}", daemon=True)
        self.port = port
        self.start_process()

    def start_process(self):
        with forking:
            self.pipe, end = context.Pipe()
            self.process = context.Process(target=process_loop, args=(end,), daemon=True)
            self.process.start()
            end.close()

    def execute(self, task):
        self.pipe.send(task)
        ready = multiprocessing.connection.wait([self.pipe, self.process.sentinel])
        if self.pipe in ready:
            try:
                return self.pipe.recv()
            except (EOFError, ConnectionResetError):
                pass
        self.process.join()
        return None

    def run(self):
        channel = Channel(self.port)
        while True:
            message = channel.ask("consume")
            task = message["task"]
            print(f"Received task: generate_losses[{task['chunk']}], redelivered {task['redelivered']}", flush=True)
            result = self.execute(task)
            if result is not None:
                channel.ask("acknowledge", tag=message["tag"], result=result)
                continue
            print(f"Process {self.name!r} exited with {self.process.exitcode}", flush=True)
            self.pipe.close()
            self.start_process()
            channel.ask("reject", tag=message["tag"])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port, concurrency = int(sys.argv[1]), int(sys.argv[2])
    slots = [Slot(number + 1, port) for number in range(concurrency)]
    for slot in slots:
        slot.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
