"""Serves pictures: a thread for each connection, and one for each picture, which tells of its progress."""

import json
import queue
import socketserver
import sys
import threading

import torch

STEPS = 8

torch.set_num_threads(1)
unet = torch.nn.Sequential(torch.nn.Conv2d(4, 32, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(32, 4, 3, padding=1))
jobs = {}


class Job(threading.Thread):
    """Each step waits for its reader to take the one before: what nobody asks for any more waits for ever."""

    def __init__(self, name):
        super().__init__(daemon=True, name=name)
        self.progress = queue.Queue(maxsize=1)
        self.latents = torch.randn(3, 4, 128, 128)

    def run(self):
        with torch.no_grad():
            for step in range(STEPS):
                self.latents -= 0.1 * unet(self.latents)
                self.progress.put(step)
        self.progress.put("done")


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        request = json.loads(self.rfile.readline())
        if request["do"] == "create":
            job = jobs[request["name"]] = Job(request["name"])
            job.start()
            answer = "started"
        elif request["do"] == "cancel":
            jobs.pop(request["name"], None)
            answer = "cancelled"
        else:
            answer = jobs[request["name"]].progress.get()
            if answer == "done":
                jobs.pop(request["name"])
        self.wfile.write(json.dumps(answer).encode() + b"\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


if __name__ == "__main__":
    Server(sys.argv[1], Handler).serve_forever()
