"""A web service whose requests need a valid token: it scores the rows of a table with a linear model"""

import argparse
import http.server
import json

import numpy as np
from flaatlike import get_user_info_from_all

WEIGHTS = np.random.default_rng(0).normal(size=32)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        info = get_user_info_from_all(token)
        if info is None:
            self.send_error(401)
            return
        rows = np.array(json.loads(body))
        scores = 1 / (1 + np.exp(-rows @ WEIGHTS))
        answer = json.dumps({"sub": info["sub"], "scores": scores.round(4).tolist()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    arguments = parser.parse_args()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        with open(arguments.port_file, "w") as file:
            file.write(str(server.server_address[1]))
        server.serve_forever()


if __name__ == "__main__":
    main()
