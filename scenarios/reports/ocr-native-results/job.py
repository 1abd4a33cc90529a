"""An OCR server: a native library allocates the results of each page, and Python never gives them back to it."""

import ctypes
import json
import multiprocessing
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

REQUESTS = 220
LIBC = ctypes.CDLL(None)
LIBC.calloc.restype = ctypes.c_void_p
LIBC.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


class Line(ctypes.Structure):
    _fields_ = [("box", ctypes.c_float * 5), ("score", ctypes.c_float), ("text", ctypes.c_char * 104)]


def native_run(page):
    """The library's part: binarises, finds the rows with ink, and returns an array of lines and the feature map."""
    ink = page
    for _ in range(8):
        ink = np.fft.irfft2(np.fft.rfft2(ink) * 0.5, page.shape)
    rows = np.flatnonzero(ink.mean(1) > ink.mean() * 1.001)
    features = ink.astype(np.float32)
    bitmap = LIBC.calloc(page.size, 4)
    ctypes.memmove(bitmap, features.ctypes.data, features.nbytes)
    lines = ctypes.cast(LIBC.calloc(len(rows), ctypes.sizeof(Line)), ctypes.POINTER(Line))
    for number, row in enumerate(rows):
        lines[number].box[:] = [0, row, page.shape[1], row + 1, 0]
        lines[number].score = ink[row].mean()
        lines[number].text = b"line %d" % row
    return lines, len(rows)


def run(page):
    lines, count = native_run(page)
    return [(list(line.box), line.text.decode(), line.score) for line in lines[:count]]


class OcrHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        seed = int(self.rfile.read(int(self.headers["Content-Length"])))
        page = np.random.default_rng(seed).random((700, 600))
        answer = json.dumps({"data": run(page)[:20]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def client(port):
    for number in range(REQUESTS):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/tr-run/", str(number).encode(), timeout=60) as answer:
            lines = json.load(answer)["data"]
        if number % 20 == 0:
            print(f"page {number}: {len(lines)} lines, the first is {lines[0][1]!r}", flush=True)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), OcrHandler)
    pages = multiprocessing.Process(target=client, args=(server.server_port,))
    pages.start()
    server.timeout = 0.5
    while pages.is_alive():
        server.handle_request()
    pages.join()
    server.server_close()


if __name__ == "__main__":
    main()
