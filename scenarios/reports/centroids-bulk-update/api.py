"""The retrieval API: queries in a thread for each connection, updates in one thread beside them"""

import json
import queue
import socketserver
import sys
import threading

import numpy as np
from index import WIDTH, MappedIndex, Writer

CENTROIDS, BULK, NEW_CENTROIDS = 8192, 60, 2048


class Api:
    def __init__(self, folder):
        self.folder = folder
        self.writer = Writer(folder, CENTROIDS)
        self.writer.append(60)
        self.loaded = MappedIndex(folder)
        self.updates, self.done = queue.Queue(maxsize=4), 0
        threading.Thread(target=self.update_index, name="update", daemon=True).start()

    def update_index(self):
        while True:
            documents = self.updates.get()
            if documents >= BULK:
                print(f"update of {documents} documents: centroid expansion", flush=True)
                self.writer.expand_centroids(NEW_CENTROIDS)
            self.writer.append(documents)
            self.loaded = MappedIndex(self.folder)
            self.done += 1
            print(f"update of {documents} documents: complete", flush=True)

    def answer(self, request):
        if request["kind"] == "update":
            self.updates.put(request["documents"])
            return {"accepted": request["documents"], "done": self.done}
        tokens = np.random.default_rng(request["seed"]).normal(size=(32, WIDTH)).astype(np.float32)
        index = self.loaded
        return {"best": index.search(tokens), "centroids": len(index.centroids)}


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(json.dumps(self.server.api.answer(json.loads(line))).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def main():
    with Server(("127.0.0.1", 0), Connection) as server:
        server.api = Api(sys.argv[1])
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
