"""A conversion server: each request opens a PDF in a provider, which closes its document when the program exits."""

import atexit
import json
import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

REQUESTS = 150
PAGES = 6


class PdfDocument:
    """A stand-in for the bindings of a PDF library: pages are rendered into pixmaps and kept until close()."""

    def __init__(self, number):
        self.rng = np.random.default_rng(number)
        self.rendered = {}

    def render(self, page):
        if page not in self.rendered:
            blocks = self.rng.integers(0, 255, (100, 75, 3), np.uint8)
            self.rendered[page] = np.repeat(np.repeat(blocks, 8, 0), 8, 1)
        return self.rendered[page]

    def close(self):
        self.rendered.clear()


class PdfProvider:
    def __init__(self, number):
        self.doc = PdfDocument(number)
        self.page_lines = {}
        atexit.register(self.cleanup_pdf_doc)

    def cleanup_pdf_doc(self):
        if self.doc is not None:
            self.doc.close()

    def lines(self, page):
        dark = self.doc.render(page).mean((1, 2)) < 127
        self.page_lines[page] = np.flatnonzero(np.diff(dark.astype(np.int8)))
        return self.page_lines[page]


class Convert(BaseHTTPRequestHandler):
    def do_POST(self):
        number = int(self.rfile.read(int(self.headers["Content-Length"])))
        provider = PdfProvider(number)
        answer = json.dumps({"lines": [len(provider.lines(page)) for page in range(PAGES)]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def client(port):
    began = time.monotonic()
    for number in range(REQUESTS):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/marker", data=str(number).encode(), timeout=60) as answer:
            lines = sum(json.load(answer)["lines"])
        if number % 15 == 0:
            print(f"{time.monotonic() - began:5.1f} s, document {number}: {lines} lines", flush=True)
        time.sleep(0.14)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Convert)
    requests = multiprocessing.Process(target=client, args=(server.server_port,))
    requests.start()
    server.timeout = 0.5
    while requests.is_alive():
        server.handle_request()
    requests.join()
    server.server_close()


if __name__ == "__main__":
    main()
