"""The provider's agent: starts the engine of the model that is to be served, and passes requests on to it"""

import json
import os
import socket
import subprocess
import sys
import time

MODELS = ["gemma-3-4b-it", "qwen3-8b", "llama-3.2-3b", "phi-4-mini", "mistral-7b", "granite-3.3-2b"]
SERVE_S = 4.2
EXIT_RESTART = 3


class SubprocessEngine:
    def __init__(self, model, path):
        self.path = path
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine.py")
        command = [sys.executable, script, "--model", model, "--socket", path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.connect(path)
        self.answers = self.connection.makefile("rb")

    def ask(self, prompt):
        self.connection.sendall(json.dumps({"prompt": prompt}).encode() + b"\n")
        return json.loads(self.answers.readline())["answer"]

    def close(self):
        self.answers.close()
        self.connection.close()
        self.process.terminate()
        self.process.wait()
        os.unlink(self.path)


class Agent:
    def __init__(self, turn):
        self.turn = turn
        model = MODELS[turn]
        self.engine = SubprocessEngine(model, os.path.join(os.environ["COCORE_HOME"], f"engine-{turn}.sock"))
        print(f"agent {os.getpid()} serves {model}", flush=True)

    def serve(self):
        until, requests = time.monotonic() + SERVE_S, 0
        while time.monotonic() < until:
            self.engine.ask(f"request {requests} of turn {self.turn}")
            requests += 1
        print(f"{requests} requests", flush=True)

    def apply_config(self):
        """The advisor's word for the next model"""
        if self.turn + 1 < len(MODELS):
            print(f"model changes to {MODELS[self.turn + 1]}, restarting", flush=True)
            os._exit(EXIT_RESTART)


def main():
    agent = Agent(int(sys.argv[1]))
    try:
        agent.serve()
        agent.apply_config()
    finally:
        agent.engine.close()


if __name__ == "__main__":
    main()
