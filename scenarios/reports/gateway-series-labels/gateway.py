"""Takes requests for completions, calls the deployment of their model, and counts them"""

import asyncio
import json
import time

import torch

from metrics import Counter, Histogram, Registry

torch.set_num_threads(1)
LABELS = ("end_user", "hashed_api_key", "api_key_alias", "requested_model", "team", "route", "status_code")


class PrometheusLogger:
    def __init__(self, registry):
        self.requests = Counter("litellm_proxy_total_requests_metric", LABELS, registry)
        self.tokens = Counter("litellm_total_tokens", LABELS, registry)
        self.spend = Counter("litellm_spend_metric", LABELS, registry)
        self.total = Histogram("litellm_request_total_latency_metric", LABELS, registry)
        self.api = Histogram("litellm_llm_api_latency_metric", LABELS, registry)
        self.overhead = Histogram("litellm_overhead_latency_metric", LABELS, registry)

    def log_success_event(self, request, tokens, started, called, answered):
        labels = {
            "end_user": request["user"],
            "hashed_api_key": request["key"],
            "api_key_alias": "alias-" + request["key"][:6],
            "requested_model": request["model"],
            "team": request["team"],
            "route": "/chat/completions",
            "status_code": "200",
        }
        self.requests.labels(**labels).inc()
        self.tokens.labels(**labels).inc(tokens)
        self.spend.labels(**labels).inc(tokens * 2e-6)
        self.total.labels(**labels).observe(time.monotonic() - started)
        self.api.labels(**labels).observe(answered - called)
        self.overhead.labels(**labels).observe(called - started)


class Deployment:
    def __init__(self):
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(512, 512)
        self.body = torch.nn.Sequential(torch.nn.Linear(512, 768), torch.nn.GELU(), torch.nn.Linear(768, 512))

    @torch.inference_mode()
    def completion(self, prompt):
        hidden = self.embed(torch.tensor(prompt))
        for _ in range(2):
            hidden = hidden + self.body(hidden)
        return (hidden @ self.embed.weight.T).argmax(1)[-8:].tolist()


class Gateway:
    def __init__(self):
        self.registry = Registry()
        self.logger = PrometheusLogger(self.registry)
        self.deployment = Deployment()
        self.closed = asyncio.Event()

    async def handle(self, reader, writer):
        while line := await reader.readline():
            started = time.monotonic()
            request = json.loads(line)
            if request["path"] == "/metrics":
                response = {"bytes": self.registry.scrape()}
            else:
                called = time.monotonic()
                completion = self.deployment.completion(request["prompt"])
                tokens = len(request["prompt"]) + len(completion)
                self.logger.log_success_event(request, tokens, started, called, time.monotonic())
                response = {"completion": completion}
            writer.write(json.dumps(response).encode() + b"\n")
            await writer.drain()
        writer.close()
        self.closed.set()


async def main():
    gateway = Gateway()
    server = await asyncio.start_server(gateway.handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await gateway.closed.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
