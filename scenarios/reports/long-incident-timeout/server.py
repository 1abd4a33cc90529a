"""Answers incidents with a language model; an arbiter restarts its worker when that is silent for too long"""

import argparse
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch

torch.set_num_threads(1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(8000, 256)
        self.cell = torch.nn.GRUCell(256, 768)
        self.words = torch.nn.Linear(768, 8000)

    @torch.inference_mode()
    def generate(self, prompt, length):
        hidden, token, out = torch.zeros(1, 768), torch.tensor([prompt % 8000]), []
        for _ in range(length):
            hidden = self.cell(self.tokens(token), hidden)
            token = self.words(hidden).argmax(1)
            out.append(int(token))
        return out


def work(listener, beat, model):
    signal.signal(signal.SIGABRT, lambda *_: sys.exit(1))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    listener.settimeout(1.0)
    while True:
        os.utime(beat.fileno())
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(None)
            incidents = json.loads(connection.makefile().readline())
            with ThreadPoolExecutor(2) as executor:
                futures = [executor.submit(model.generate, incident, 150) for incident in incidents]
                answers = [future.result() for future in futures]
            connection.sendall(json.dumps([len(answer) for answer in answers]).encode() + b"\n")


def log(level, text):
    print(f"[{os.getpid()}] [{level}] {text}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--timeout", type=float, default=9)
    arguments = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    model = Model().eval()
    pid, aborted, beat = 0, False, tempfile.TemporaryFile()
    with open(arguments.port_file + ".new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(arguments.port_file + ".new", arguments.port_file)
    while not stopped.is_set():
        if pid == 0:
            os.utime(beat.fileno())
            pid, aborted = os.fork(), False
            if pid == 0:
                work(listener, beat, model)
            log("INFO", f"Booting worker with pid: {pid}")
        stopped.wait(1.0)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                log("ERROR", f"Worker (pid:{pid}) was sent SIGKILL! Perhaps out of memory?")
            pid = 0
        elif time.time() - os.fstat(beat.fileno()).st_mtime > arguments.timeout:
            if not aborted:
                log("CRITICAL", f"WORKER TIMEOUT (pid:{pid})")
            os.kill(pid, signal.SIGKILL if aborted else signal.SIGABRT)
            aborted = True
    if pid:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
