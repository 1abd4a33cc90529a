"""Serves predictions; takes the newest version of the model from the registry for each group of requests"""

import http.server
import json
import os
import subprocess
import sys
import time

import torch

import tracing

torch.set_num_threads(1)
WIDTH, PREDICT_S = 96, 0.1
HERE = os.path.dirname(os.path.abspath(__file__))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))

    def forward(self, inputs):
        return self.layers(inputs)


@tracing.trace_disabled
def log_model(model, path):
    torch.save(model.state_dict(), path)


@tracing.trace_disabled
def load_model(path):
    model = Network()
    model.load_state_dict(torch.load(path))
    return model.eval()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer, status = self.predict(rows), 200
        except RuntimeError as error:
            print(f"prediction failed: {error}", file=sys.stderr, flush=True)
            answer, status = {"error": str(error)}, 500
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @torch.inference_mode()
    def predict(self, rows):
        model, until = load_model("model.pt"), time.monotonic() + PREDICT_S
        inputs = torch.tensor(rows)
        while True:
            scores = model(inputs)
            if time.monotonic() > until:
                break
        tracing.provider.get().record("predict", rows=len(rows), best=scores.argmax(1).tolist())
        return {"predictions": scores.tolist()}

    def log_message(self, *arguments):
        pass


def main():
    torch.manual_seed(0)
    tracing.disable()
    tracing.set_experiment("nightly-scores")
    log_model(Network(), "model.pt")
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.timeout = 0.5
    client = subprocess.Popen([sys.executable, os.path.join(HERE, "client.py"), str(server.server_port)])
    while client.poll() is None:
        server.handle_request()
    server.server_close()
    return client.returncode


if __name__ == "__main__":
    sys.exit(main())
