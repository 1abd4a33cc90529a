"""The manager of a kernel process, and its client with the channels"""

import os
import pickle
import select
import socket
import subprocess
import sys
import threading

KERNEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel.py")


class KernelManager:
    def start_kernel(self, number):
        shell, shell_end = socket.socketpair()
        heart, heart_end = socket.socketpair()
        ends = [shell_end.fileno(), heart_end.fileno()]
        self.process = subprocess.Popen([sys.executable, KERNEL, *map(str, ends), str(number)], pass_fds=ends)
        shell_end.close()
        heart_end.close()
        return KernelClient(shell, heart)

    def shutdown_kernel(self, client):
        client.send("shutdown")
        self.process.wait()


class Channel(threading.Thread):
    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.exit = threading.Event()

    def stop(self):
        self.exit.set()
        self.join()


class HeartbeatChannel(Channel):
    time_to_dead = 1.0

    def run(self):
        heart = self.client.heart
        while not self.exit.is_set():
            try:
                heart.sendall(b"ping")
                ready, _, _ = select.select([heart], [], [], self.time_to_dead)
                self.client.beating = bool(ready) and bool(heart.recv(16))
            except (OSError, ValueError):
                self.client.beating = False
                heart.close()
            self.exit.wait(self.time_to_dead)


class IOPubChannel(Channel):
    def run(self):
        with self.client.shell.makefile("rb") as stream:
            while not self.exit.is_set():
                try:
                    message = pickle.load(stream)
                except (EOFError, OSError):
                    break
                with self.client.arrived:
                    self.client.messages.append(message)
                    self.client.arrived.notify_all()
        self.client.shell.close()
        self.exit.wait()


class KernelClient:
    def __init__(self, shell, heart):
        self.shell, self.heart = shell, heart
        self.beating = True
        self.messages = []
        self.arrived = threading.Condition()
        self.channels = []

    def start_channels(self):
        self.channels = [HeartbeatChannel(self), IOPubChannel(self)]
        for channel in self.channels:
            channel.start()

    def stop_channels(self):
        for channel in self.channels:
            channel.stop()
        self.channels = []

    def send(self, text):
        self.shell.sendall(text.encode() + b"\n")

    def execute(self, cell):
        """Runs a cell; what it displayed"""
        self.send(cell)
        with self.arrived:
            self.arrived.wait_for(lambda: self.messages and self.messages[-1]["data"] == "idle"
                                  and self.messages[-1]["cell"] == cell)
            return [m for m in self.messages if m["cell"] == cell and m["type"] == "display_data"]
