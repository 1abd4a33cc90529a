"""The backend of the tracker: scalars go into its index, and media into a bucket that has no room"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

received = {"scalar": 0, "media": 0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        kind = self.path.rsplit("/", 1)[-1]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        received[kind] = received.get(kind, 0) + 1
        answer = json.dumps({"kind": kind, "bytes": len(body)}).encode()
        self.send_response(507 if kind == "media" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
