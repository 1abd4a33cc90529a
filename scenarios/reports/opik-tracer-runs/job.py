"""A chat service: a chain of a prompt and a language model behind HTTP, traced with Opik"""

import http.server
import json
import os
import subprocess
import sys
import time
import uuid

import torch
from torch import nn

from opik_tracer import OpikTracer, Streamer

torch.set_num_threads(1)
REQUEST_S = 0.11
TEMPLATE = "Answer with the documents only.\nDocuments: {documents}\nQuestion: {question}\nAnswer:"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(256, 96)
        self.recurrent = nn.GRU(96, 192, batch_first=True)
        self.head = nn.Linear(192, 256)

    @torch.inference_mode()
    def generate(self, prompt, until):
        tokens = torch.tensor(list(prompt.encode()[-256:]))[None]
        written = []
        while time.monotonic() < until:
            hidden, _ = self.recurrent(self.embedding(tokens))
            token = int(self.head(hidden[0, -1]).argmax())
            written.append(chr(97 + token % 26))
            tokens = torch.cat([tokens[:, 1:], torch.tensor([[token]])], 1)
        return "".join(written)


class Chain:
    def __init__(self, model, callback):
        self.model, self.callback = model, callback

    def invoke(self, input):
        run, until = uuid.uuid4(), time.monotonic() + REQUEST_S
        self.callback.on_run_start(run, None, "RunnableSequence", input)
        prompt_run = uuid.uuid4()
        self.callback.on_run_start(prompt_run, run, "PromptTemplate", input)
        prompt = TEMPLATE.format(**input)
        self.callback.on_run_end(prompt_run, run, {"text": prompt})
        model_run = uuid.uuid4()
        self.callback.on_run_start(model_run, run, "ChatModel", {"messages": [prompt]})
        answer = self.model.generate(prompt, until)
        self.callback.on_run_end(model_run, run, {"generations": [answer]})
        self.callback.on_run_end(run, None, {"answer": answer})
        return {"answer": answer}


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(self.server.chain.invoke(request)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def main():
    torch.manual_seed(0)
    streamer = Streamer()
    tracer = OpikTracer(streamer)
    server = http.server.HTTPServer(("127.0.0.1", 0), Chat)
    server.chain = Chain(Model().eval(), tracer)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")
    client = subprocess.Popen([sys.executable, script, str(server.server_port)])
    # the client keeps one connection for all of its requests
    server.handle_request()
    server.server_close()
    streamer.end()
    print(f"{tracer.created_traces()} traces, {streamer.sent} messages sent", flush=True)
    return client.wait()


if __name__ == "__main__":
    sys.exit(main())
