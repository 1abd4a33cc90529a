"""Stands in for the provider of language models: chat completions over HTTP, with answers as text or as a tool call"""

import http.server
import json
import random
import time

import torch
from torch import nn

torch.set_num_threads(1)
REQUEST_S = 0.25


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.head = nn.Embedding(512, 96), nn.GRUCell(96, 256), nn.Linear(256, 512)

    @torch.inference_mode()
    def sample(self, tokens, until):
        hidden, token, sampled = torch.zeros(1, 256), torch.zeros(1, dtype=torch.long), []
        while len(sampled) < tokens or time.monotonic() < until:
            hidden = self.cell(self.embedding(token), hidden)
            token = torch.multinomial(self.head(hidden).softmax(1), 1)[0]
            sampled.append(int(token))
        return sampled[:tokens]


class Completions(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        until = time.monotonic() + REQUEST_S
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        letters = sum(len(message["content"]) for message in request["messages"])
        wanted = 60 + letters // 40
        words = [self.server.words[token] for token in self.server.model.sample(wanted, until)]
        if "tools" in request:
            # a word of the rationale is a token
            arguments = json.dumps({"reasons": " ".join(words), "choice": "Y" if letters % 7 else "N"})
            tokens = arguments.split(" ")
            content = {"tool_calls": [{"function": {"arguments": " ".join(tokens[: request["max_tokens"]])}}]}
            reason = "length" if len(tokens) > request["max_tokens"] else "tool_calls"
        else:
            content, reason = {"content": " ".join(words[: request["max_tokens"]])}, "stop"
        data = json.dumps({"choices": [{"message": content, "finish_reason": reason}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def main():
    torch.manual_seed(0)
    numbers = random.Random(0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Completions)
    server.daemon_threads = True
    server.model = Language().eval()
    server.words = ["".join(numbers.choices("abcdefghilmnoprstu", k=numbers.randint(2, 9))) for _ in range(512)]
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
