"""A log store: finds the logs in the volumes of a node's pods, and answers queries on them"""

import argparse
import json
import os
import stat
import urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer


def walk(folder):
    """Each file below a folder, with what lstat() says of it"""
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            try:
                yield path, os.lstat(path)
            except FileNotFoundError:
                continue


def search(folder, text):
    files = matches = 0
    for path, status in walk(folder):
        files += 1
        if ".log" not in os.path.basename(path) or not stat.S_ISREG(status.st_mode):
            continue
        try:
            with open(path, errors="replace") as file:
                matches += sum(text in line for line in file)
        except FileNotFoundError:
            continue
    return {"files": files, "matches": matches}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/quit":
            self.server.serving, answer = False, {}
        else:
            text = urllib.parse.parse_qs(address.query)["contains"][0]
            answer = search(self.server.folder, text)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port-file", required=True)
    arguments = parser.parse_args()
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.folder, server.serving = arguments.folder, True
        with open(arguments.port_file, "w") as file:
            file.write(f"{server.server_address[1]}\n")
        while server.serving:
            server.handle_request()


if __name__ == "__main__":
    main()
