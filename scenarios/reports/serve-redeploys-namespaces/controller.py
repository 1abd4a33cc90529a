"""The controller: brings the replicas of each deployment to the state that a driver asks for, and routes requests"""

import json
import os
import socket
import subprocess
import sys


class Replica:
    def __init__(self, version):
        here = os.path.dirname(os.path.abspath(__file__))
        self.version = version
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "replica.py"), str(version)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process.stdout.readline()

    def call(self, text):
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Controller:
    def __init__(self):
        self.replicas = {}

    def deploy(self, namespace, name, version):
        key = (namespace, name)
        old = self.replicas.get(key)
        if old is not None and old.version == version:
            return
        self.replicas[key] = Replica(version)
        if old is not None:
            old.stop()

    def handle(self, message):
        if message["kind"] == "deploy":
            self.deploy(message["namespace"], message["name"], message["version"])
            return {"deployed": message["version"]}
        replica = self.replicas[message["namespace"], message["name"]]
        return replica.call(message["text"])


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    controller, ended = Controller(), False
    while not ended:
        connection, _ = listener.accept()
        with connection:
            for line in connection.makefile():
                message = json.loads(line)
                if message["kind"] == "shutdown":
                    ended = True
                    break
                connection.sendall(json.dumps(controller.handle(message)).encode() + b"\n")
    for replica in controller.replicas.values():
        replica.stop()
    print("controller ended", flush=True)


if __name__ == "__main__":
    main()
