"""An API that answers at once and starts a background thread for each request; the threads wait to be told, and nobody does."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLIENT = """
import http.client, json, random, sys, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
began = time.monotonic()
n = 0
while time.monotonic() - began < seconds:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"user": n, "rows": [random.random() for _ in range(22000)]})
    connection.request("POST", "/score", body)
    connection.getresponse().read()
    connection.close()
    n += 1
    time.sleep(0.03)
print(n, "requests", flush=True)
"""


class BackgroundScore(threading.Thread):
    """Scores one upload; a later request may cancel it or ask for its state."""

    def __init__(self, payload):
        super().__init__(daemon=True)
        self.payload = payload
        self.acknowledged = threading.Event()
        self.score = None

    def run(self):
        rows = sorted(self.payload["rows"])
        half = len(rows) // 2
        self.score = sum(rows[half:]) - sum(rows[:half])
        self.acknowledged.wait()
        print("stored", self.score)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        BackgroundScore(payload).start()
        answer = b'{"status": "accepted"}'
        self.send_response(202)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    subprocess.run([sys.executable, "-c", CLIENT, str(server.server_address[1]), "28"], check=True)
    print(threading.active_count(), "threads at the end")
    server.shutdown()


if __name__ == "__main__":
    main()
