#!/usr/bin/env python3
"""Do real Prometheus, node_exporter and promtool take the metrics of ullage?

    metrics.py --ullage PATH

Prometheus scrapes `ullage serve` and receives what it pushes as OTLP, or VictoriaMetrics, node_exporter reads `--metrics-file`,
promtool checks texts and alert rules, and each query of the Grafana dashboard is asked. A tool that is not on the PATH (Debian: prometheus, prometheus-node-exporter) is named, and what
needs it is left out. Everything listens on 127.0.0.1. Prints what a scrape costs.
"""

import argparse
import contextlib
import gzip
import http.server
import json
import math
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import watched

SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packaging", "prometheus")
# Workers that map a shared segment, and a main process that grows until it is told, then holds what it has.
JOB = """
import mmap, multiprocessing, os, sys, time

def worker(segment):
    segment.read()
    time.sleep(1000)

if __name__ == "__main__":
    name = "/dev/shm/ullage-metrics-test-%d" % os.getpid()
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.unlink(name)
    os.ftruncate(file, 8 << 20)
    segment = mmap.mmap(file, 8 << 20)
    segment.write(b"x" * (8 << 20))
    for _ in range(3):
        multiprocessing.get_context("fork").Process(target=worker, args=(segment,), daemon=True).start()
    held = []
    while not os.path.exists(sys.argv[1]):
        held.append(bytearray(os.urandom(4 << 20)))
        time.sleep(0.25)
    time.sleep(4)
"""
# It is ended at its budget.
TOO_MUCH = "import time; held = [bytearray(b'x' * (1 << 20)) for _ in range(90)]; time.sleep(60)"
# How long anything here may take; nothing waits for it where all is well.
AT_MOST_S = 150
RUNS, PROCESSES, OLD_RUNS, SCRAPES = 16, 12, 1000, 20


class Failed(Exception):
    pass


class Test:
    def __init__(self, ullage, folder):
        self.ullage, self.folder, self.failed = ullage, folder, 0
        self.home = os.path.join(folder, "home")
        self.textfiles = os.path.join(folder, "textfiles")
        os.makedirs(self.home)
        os.makedirs(self.textfiles)
        self.environment = dict(os.environ, ULLAGE_HOME=self.home, TMPDIR=folder)

    def check(self, what, holds, got=""):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}", flush=True)
        if not holds:
            self.failed += 1
            print(str(got)[:2000])

    def run(self, *words):
        return subprocess.Popen([self.ullage, "run", "-q", *words], env=self.environment, stdin=subprocess.DEVNULL)

    @contextlib.contextmanager
    def serving(self, home=None, *words, **environment):
        """`ullage serve` on a free port; its pid and address."""
        environment = dict(self.environment, ULLAGE_HOME=home or self.home, **environment)
        words = [self.ullage, "serve", "--listen", "127.0.0.1:0", *words]
        server = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            yield server.pid, re.search(r"http://([^/]+)/metrics", server.stderr.readline())[1]
        finally:
            server.terminate()
            self.said = server.stderr.read()
            server.wait()


@contextlib.contextmanager
def started(log, *words):
    with open(log, "w") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def got(address, path="/metrics", **headers):
    with urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", headers=headers), timeout=30) as answer:
        body = answer.read()
    return gzip.decompress(body).decode() if answer.headers["Content-Encoding"] == "gzip" else body.decode()


def until(what, answers):
    """What `answers` gives, once that is anything."""
    end = time.monotonic() + AT_MOST_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            answer = answers()
            if answer:
                return answer
        time.sleep(0.2)
    raise Failed(what)


def asked(prometheus, query):
    text = got(prometheus, "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    return json.loads(text)["data"]["result"]


def samples(text, name):
    """Labels and values of a metric in a text."""
    return {m[1]: float(m[2]) for m in re.finditer(rf"^{name}(\{{.*\}}) (\S+)$", text, re.M)}


def queries():
    """Of the dashboard, for all runs."""
    with open(os.path.join(SHIPPED, "ullage.dashboard.json")) as file:
        for panel in json.load(file)["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"].replace("$run", ".*").replace("$__rate_interval", "1m")


def promtool(test, words, text=None):
    done = subprocess.run(["promtool", *words], input=text, cwd=SHIPPED, capture_output=True, text=True)
    test.check("promtool " + " ".join(words), done.returncode == 0, done.stdout + done.stderr)


def prometheus_config(test, **targets):
    file = os.path.join(test.folder, "prometheus.yml")
    jobs = [{"job_name": name, "static_configs": [{"targets": [address]}]} for name, address in targets.items()]
    with open(file, "w") as out:
        # JSON is YAML.
        json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [f"{SHIPPED}/ullage.rules.yml"], "scrape_configs": jobs}, out)
    return file


def peers(test):
    """A job from its start to its end, seen by all of them."""
    enough, file = os.path.join(test.folder, "enough"), os.path.join(test.textfiles, "ullage.prom")
    job = os.path.join(test.folder, "job.py")
    with open(job, "w") as out:
        out.write(JOB)
    has = {tool: shutil.which(tool) for tool in ["prometheus", "promtool", "prometheus-node-exporter"]}
    for tool, path in has.items():
        if not path:
            print(f"left out: no {tool} on the PATH")
    if has["promtool"]:
        promtool(test, ["check", "rules", "ullage.rules.yml"])
        promtool(test, ["test", "rules", "ullage.rules.test.yml"])
    with contextlib.ExitStack() as stack:
        _, served = stack.enter_context(test.serving())
        node = prometheus = None
        if has["prometheus-node-exporter"]:
            node = f"127.0.0.1:{free_port()}"
            words = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={test.textfiles}"]
            stack.enter_context(
                started(f"{test.folder}/node.log", "prometheus-node-exporter", f"--web.listen-address={node}", *words)
            )
        if has["prometheus"]:
            prometheus = f"127.0.0.1:{free_port()}"
            config = prometheus_config(test, ullage=served, **({"node": node} if node else {}))
            words = [f"--config.file={config}", f"--storage.tsdb.path={test.folder}/tsdb"]
            stack.enter_context(
                started(f"{test.folder}/prometheus.log", "prometheus", *words, f"--web.listen-address={prometheus}")
            )
        over = test.run("--memory-max", "64MiB", "--", sys.executable, "-c", TOO_MUCH)
        test.check("a job over its budget is ended", over.wait() == 53)
        live = test.run("--memory-max", "2GiB", "--metrics-file", file, "--", sys.executable, job, enough)
        try:
            text = seen_live(test, served, node, prometheus, file)
            run = re.search(r'ullage_sample_timestamp_seconds\{run="([^"]+)"', text)[1]
        finally:
            open(enough, "w").close()
        most, ended = 0.0, False
        while not ended:
            ended = live.poll() is not None
            with open(file) as now:
                most = max(most, sum(samples(now.read(), "ullage_memory_bytes").values()))
            time.sleep(0.02)
        test.check("the job ends as it would without", live.returncode == 0, live.returncode)
        most = max(most, test.most)
        seen_ended(test, served, prometheus, file, run, most)
        if has["promtool"]:
            for words in (text, got(served)):
                promtool(test, ["check", "metrics"], words)
            with open(file) as end:
                promtool(test, ["check", "metrics"], end.read())


def seen_live(test, served, node, prometheus, file):
    left, most = dict.fromkeys(queries()), 0.0
    count = len(left)

    def all_have_rows():
        nonlocal most
        with contextlib.suppress(FileNotFoundError), open(file) as now:
            most = max(most, sum(samples(now.read(), "ullage_memory_bytes").values()))
        for title, query in list(left) if prometheus else []:
            if asked(prometheus, query):
                del left[(title, query)]
        return most > 0 and (not prometheus or not left)

    try:
        until("rows", all_have_rows)
    except Failed:
        pass
    if prometheus:
        test.check(f"each of {count} queries of the dashboard returns rows", not left, list(left))
        up = until("up", lambda: len(up := asked(prometheus, "up == 1")) >= 1 + bool(node) and up)
        test.check("Prometheus scrapes what it was told to", len(up) == 1 + bool(node), up)
        loaded = json.loads(got(prometheus, "/api/v1/rules"))["data"]["groups"]
        health = {rule["name"]: rule["health"] for group in loaded for rule in group["rules"]}
        test.check("Prometheus evaluates the rules", len(health) >= 6 and set(health.values()) <= {"ok", "unknown"}, health)
        over = until("alert", lambda: asked(prometheus, 'ALERTS{alertname="UllageRunEndedByMemory"}'))
        test.check("the run that its budget ended raises an alert", over[0]["metric"]["outcome"] == "budget", over)
    if node:
        text = got(node)
        test.check("node_exporter reads the file", samples(text, "ullage_memory_bytes"), text)
        test.check("and finds no error in it", "node_textfile_scrape_error 0" in text, text)
    test.most = most
    text = got(served)
    with open(file) as now:
        names = [set(re.findall(r"^# TYPE (\S+)", one, re.M)) for one in (text, now.read())]
    ended = {"ullage_finding", "ullage_run_ended", "ullage_run_ended_timestamp_seconds"}
    test.check("the file and the port have the same metrics", names[0] - ended == names[1] - ended, names)
    test.check("OpenMetrics where it is asked for", got(served, Accept="application/openmetrics-text").endswith("# EOF\n"))
    return text


def seen_ended(test, served, prometheus, file, run, most):
    with open(file) as end:
        text = end.read()
    test.check("at the end the file holds the end", samples(text, "ullage_run_ended") and "memory_bytes" not in text, text)
    text = until("end", lambda: run in got(served, "/metrics") and got(served))
    test.check("the port shows no memory of it any more", not [s for s in samples(text, "ullage_memory_bytes") if run in s], text)
    with open(os.path.join(test.home, run, "verdict.json")) as verdict:
        peak = json.load(verdict)["verdict"]["memory"]["peak_bytes"]
    far = abs(most - peak) / peak
    test.check(f"the most that the categories summed to is the verdict's peak ({far:.4%} apart)", far <= 0.001, (most, peak))
    if prometheus:
        gone = f'ullage_memory_bytes{{run="{run}",job="ullage"}}'
        began = time.monotonic()
        until("gone", lambda: not asked(prometheus, gone))
        print(f"      Prometheus shows no memory of it {time.monotonic() - began:.1f} s later")


def small_run(home, n, processes, recorder):
    """A folder with the `now.json` of a busy run."""
    run = f"20261125-0102{n:02}-train-{4711 + n}"
    categories = ["anonymous", "malloc", "malloc-freed-but-held", "torch-shared", "mapped-files", "file", "page-tables", "stacks", "python"]
    limits = ["mappings", "descriptors", "cgroup memory", "/dev/shm bytes", "/dev/shm inodes", "memory and swap", "cgroup tasks", "commit limit"]
    rows = [
        {
            **{"role": "loader worker", "index": index, "bytes": 3 << 28, "private_bytes": (1 << 28) + index * 12_345},
            **{"swap_bytes": 0, "descriptors": 50, "mappings": 900, "cpu_s": 1.5},
        }
        for index in range(processes)
    ]
    role = {"count": processes, "private_bytes": 1, "shared_bytes": 1, "swap_bytes": 0, "cpu_s": 12.34, "major_faults": 7}
    now = {
        **{"schema": 1, "run": run, "command": ["python", "train.py", "--epochs", "9"], "job": "4711", "node": "n064"},
        **{"rank": n, "attempt": None, "recorder": recorder, "started_unix": time.time() - 60, "at": 59.5},
        "memory": {
            **{"bytes": 9 << 30, "error_bytes": 1 << 20, "bytes_per_second": 5},
            **{"categories": dict.fromkeys(categories, 123_456_789), "beside": {"page-cache": 1 << 33, "kernel": 1 << 25}},
        },
        "processes": rows,
        "roles": {"main": {**role, "count": 1}, "loader worker": role, "resource tracker": role},
        "limits": [{"limit": one, "scope": "host", "used": 7, "allowed": 9, "seconds_left": 600.0} for one in limits],
        "growth": {"class": "live-tensors", "bytes": 1, "bytes_per_second": 12_345},
        "segments": {"by_kind": {"torch": {"count": 9, "bytes": 1 << 20}}, "unused": 0, "unused_bytes": 0},
        **{"findings": [], "stall_s": 0.5, "oom_kills": 0, "restarts": None, "gpus": []},
        "cost": {"cpu_s": 0.5, "peak_bytes": 14 << 20},
    }
    os.makedirs(os.path.join(home, run))
    with open(os.path.join(home, run, "now.json"), "w") as file:
        json.dump(now, file)


def cpu_ms(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e6


def cost(test):
    """What a scrape of a busy node costs, beside many old recordings and many half-open clients."""
    home = os.path.join(test.folder, "busy")
    recorder = {"pid": os.getpid(), "start": watched.start_ticks()}
    for n in range(RUNS):
        small_run(home, n, PROCESSES, recorder)
    for n in range(OLD_RUNS):
        old = os.path.join(home, f"20261001-{n:06}-train-7")
        os.makedirs(old)
        with open(os.path.join(old, "run.json"), "w") as file:
            json.dump({"run": f"old {n}"}, file)
        os.utime(os.path.join(old, "run.json"), (0, 0))
    with test.serving(home) as (pid, served):
        host, port = served.split(":")
        half_open = [socket.create_connection((host, int(port))) for _ in range(100)]
        for one in half_open:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
        took, sizes, before = [], [], cpu_ms(pid)
        for _ in range(SCRAPES):
            # An answer stands for half a second: each of these is a new one.
            time.sleep(0.55)
            begun = time.perf_counter()
            request = urllib.request.Request(f"http://{served}/metrics", headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                sizes.append(len(answer.read()))
            took.append(1000 * (time.perf_counter() - begun))
        of_cpu = (cpu_ms(pid) - before) / SCRAPES
        text = got(served)
        for one in half_open:
            one.close()
        with open(f"/proc/{pid}/status") as status:
            resident = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024
    series = sum(not line.startswith("#") for line in text.splitlines())
    print(
        f"      {RUNS} runs of {PROCESSES} processes, {OLD_RUNS} old recordings, 100 half-open clients: "
        f"{statistics.median(took):.1f} ms (most {max(took):.1f}, CPU time {of_cpu:.1f}), {max(sizes) / 1024:.1f} KiB by gzip, "
        f"{len(text) / 1024:.0f} KiB of text, {series} series, {resident:.1f} MiB resident"
    )
    test.check("a scrape of them has at most 64 KiB", max(sizes) <= 64 << 10, sizes)
    test.check("and all runs", len(samples(text, "ullage_run_info")) == RUNS, text)


class Receiver(http.server.BaseHTTPRequestHandler):
    """A collector that is not ready at first."""

    pushes = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.pushes.append((self.path, dict(self.headers), body))
        self.send_response(503 if len(self.pushes) <= 2 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def pushed(test):
    """What is pushed as OTLP: to a collector that fails first, and to a real Prometheus, beside what is scraped there."""
    home = os.path.join(test.folder, "pushed")
    recorder = {"pid": os.getpid(), "start": watched.start_ticks()}
    for n in range(2):
        small_run(home, n, PROCESSES, recorder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}/base/",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20eA",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    with test.serving(home, "--otlp", **variables):
        until("pushes", lambda: len(Receiver.pushes) >= 5)
    server.shutdown()
    path, headers, body = Receiver.pushes[-1]
    test.check("it is pushed to where the variables say", path == "/base/v1/metrics", path)
    headers = {name.lower(): value for name, value in headers.items()}
    wanted = {"content-type": "application/x-protobuf", "authorization": "Basic eA"}
    test.check("as protobuf, with their headers", {name: headers.get(name) for name in wanted} == wanted, headers)
    test.check("all runs are in it", body.count(b"ullage.run_info") == 1 and body.count(b"-train-471") > 100, body[:300])
    once = [test.said.count(words) for words in ("503", "taken again")]
    test.check("that nobody took it is said once, and that it is taken again", once == [1, 1], test.said)
    refused = subprocess.run([test.ullage, "serve", "--otlp", "https://c/"], env=test.environment, capture_output=True, text=True)
    test.check("a push that could not arrive is refused", refused.returncode != 0 and "TLS" in refused.stderr, refused.stderr)
    pushed_to_stores(test, home)


# Labels by which a store says who sent a series.
SENDER = re.compile("job|instance|host_name|scope_.*|service_.*")


def stores(folder, listen):
    """Of the real stores that receive OTLP: their name, the words that start one, and where they take it."""
    prometheus, victoria = shutil.which("prometheus"), shutil.which("victoria-metrics")
    receives = prometheus and subprocess.run([prometheus, "--help"], capture_output=True, text=True).stdout
    if receives and "--web.enable-otlp-receiver" in receives:
        config = os.path.join(folder, "otlp.yml")
        open(config, "w").close()
        words = [f"--config.file={config}", f"--storage.tsdb.path={folder}/otlp", "--web.enable-otlp-receiver"]
        yield "Prometheus", [prometheus, *words, f"--web.listen-address={listen}"], "/api/v1/otlp/v1/metrics"
    if victoria:
        words = ["-opentelemetry.usePrometheusNaming", "-search.latencyOffset=0s", f"-storageDataPath={folder}/victoria"]
        yield "VictoriaMetrics", [victoria, *words, f"-httpListenAddr={listen}"], "/opentelemetry/v1/metrics"


def pushed_to_stores(test, home):
    listen = f"127.0.0.1:{free_port()}"
    there = list(stores(test.folder, listen))
    if not there:
        print("left out: neither a Prometheus (3.0 or newer) nor a VictoriaMetrics on the PATH that receives OTLP")
    for name, words, path in there:
        with contextlib.ExitStack() as stack:
            stack.enter_context(started(f"{test.folder}/store.log", *words))
            until(name, lambda: not asked(listen, "up"))
            pushes = stack.enter_context(
                test.serving(home, "--otlp", f"http://{listen}{path}", OTEL_METRIC_EXPORT_INTERVAL="500")
            )
            scraped = {
                (line[0], *sorted(re.findall(r'(\w+)="([^"]+)"', line[1]))): float(line[2])
                for line in re.findall(r"^(ullage_\w+)\{(.*)\} (\S+)$", got(pushes[1]), re.M)
            }

            def series():
                found = {}
                for one in asked(listen, '{__name__=~"ullage_.+"}'):
                    labels = {key: value for key, value in one["metric"].items() if not SENDER.fullmatch(key)}
                    found[(labels.pop("__name__"), *sorted(labels.items()))] = float(one["value"][1])
                return found

            found = until("series", lambda: len(found := series()) >= len(scraped) and found)
            # A store keeps fewer digits of what it is sent.
            far = [key for key in scraped if not math.isclose(scraped[key], found.get(key, -1), rel_tol=1e-9)]
            test.check(
                f"{name} has each of {len(scraped)} series by push as a scrape would have it",
                not far and len(found) == len(scraped) > 100,
                (far[:5], [key for key in found if key not in scraped][:5]),
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ullage", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ullage-metrics-") as folder:
        test = Test(os.path.abspath(arguments.ullage), folder)
        for part in (cost, pushed, peers):
            try:
                part(test)
            except Failed as failed:
                test.check(f"{part.__name__}: nothing came of {failed}", False)
    print(f"{test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
