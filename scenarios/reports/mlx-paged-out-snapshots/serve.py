"""Serves a model over HTTP, and lets two agents work with it"""

import http.client
import http.server
import json
import os
import random
import subprocess
import sys
import threading
import time

SECONDS, SYSTEM, QUESTION = 29, 128, 640


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runner.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.runner, self.lock = subprocess.Popen([sys.executable, runner], **pipes), threading.Lock()

    def ask_runner(self, body):
        with self.lock:
            self.runner.stdin.write(body + "\n")
            self.runner.stdin.flush()
            return self.runner.stdout.readline()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = self.server.ask_runner(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def agent(name, port, until):
    """Asks a new question with each request, behind the same instructions"""
    instructions = random.Random("instructions").choices(range(4000), k=SYSTEM)
    rng, connection, requests = random.Random(name), http.client.HTTPConnection("127.0.0.1", port), 0
    while time.monotonic() < until:
        tokens = instructions + rng.choices(range(4000), k=QUESTION)
        connection.request("POST", "/api/generate", json.dumps({"tokens": tokens}))
        answer = json.loads(connection.getresponse().read())
        requests += 1
        if requests % 5 == 0:
            print(f"{name}, request {requests}: {answer}", flush=True)
    connection.close()


def main():
    server = Server()
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    until = time.monotonic() + SECONDS
    agents = [threading.Thread(target=agent, args=(n, server.server_port, until)) for n in ("planner", "coder")]
    for thread in agents:
        thread.start()
    for thread in agents:
        thread.join()
    server.shutdown()
    server.runner.stdin.close()
    return server.runner.wait()


if __name__ == "__main__":
    sys.exit(main())
