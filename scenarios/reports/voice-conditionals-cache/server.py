"""A speech server: texts and reference voices come as lines of JSON over a socket, and sound is made of them"""

import json
import socketserver
import sys

import torch

from engine import Engine
from chatterbox import ChatterboxTTS


class Requests(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            request = json.loads(line)
            sound = self.server.engine.synthesize(request["text"], request["voice"], request["exaggeration"])
            reply = {"samples": len(sound), "peak": round(float(sound.abs().max()), 3)}
            self.wfile.write(json.dumps(reply).encode() + b"\n")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    engine = Engine(ChatterboxTTS().eval())
    with socketserver.UnixStreamServer(sys.argv[1], Requests) as server:
        server.engine = engine
        # the soak keeps one connection for all of its requests
        server.handle_request()


if __name__ == "__main__":
    main()
