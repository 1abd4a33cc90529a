"""Runs the scenarios of an energy transition model through the client of its web service."""

import asyncio
import http.server
import json
import multiprocessing
import random
import threading

SCENARIOS = 600


class Engine(http.server.BaseHTTPRequestHandler):
    """The web service: the results of a scenario, as curves of a year."""

    def do_GET(self):
        rng = random.Random(self.path)
        curves = {f"curve_{n}": [{"hour": h, "load": rng.random()} for h in range(240)] for n in range(12)}
        body = json.dumps(curves).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ETMSession:
    """The transport: a coroutine's API, for callers that have no event loop."""

    def __init__(self, port):
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _get(self, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        body = (await reader.read()).split(b"\r\n\r\n", 1)[1]
        writer.close()
        await writer.wait_closed()
        return json.loads(body)

    def get(self, path):
        return asyncio.run_coroutine_threadsafe(self._get(path), self._loop).result()

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def get_client(port):
    return ETMSession(port)


def load_model():
    """The graph of converters and their links, as the scenarios refer to it."""
    rng = random.Random(0)
    nodes = [{"key": f"converter_{n}", "shares": {"input": [rng.random()]}, "links": []} for n in range(150_000)]
    for node in nodes:
        node["links"].append({"to": rng.choice(nodes)["key"], "share": rng.random()})
    return nodes


def peak(nodes, curves, number):
    totals = [sum(point["load"] for point in curve) for curve in curves.values()]
    part = nodes[number % 50 :: 50]
    return max(totals) * sum(node["shares"]["input"][0] * node["links"][0]["share"] for node in part) / len(part)


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Engine)
    multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    server.socket.close()
    nodes = load_model()
    for number in range(SCENARIOS):
        session = get_client(port)
        curves = session.get(f"/scenarios/{number}/curves")
        for _ in range(4):
            answer = peak(nodes, curves, number)
        session.close()
        if number % 25 == 0:
            print(f"scenario {number}: peak {answer:.1f} MW", flush=True)


if __name__ == "__main__":
    main()
