#!/usr/bin/env python3
"""Is the page of a run what it promises to be, in a real browser? One file that asks for nothing and fails at nothing.

    page.py --ullage PATH --python PYTHON [--recordings FOLDER]

Records two jobs, one of them with hostile names; writes their pages, and those of all recordings of FOLDER; opens each in
Chromium and counts: plots drawn, requests, errors of the console, and whether the largest value is the verdict's peak.
"""

import argparse
import html.parser
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HOSTILE = """
import ctypes, time
ctypes.CDLL(None).prctl(15, b"</script><b>x", 0, 0, 0)
held = [bytearray(40 << 20)]
time.sleep(1.5)
raise SystemExit("<img src=x onerror=alert(1)>")
"""


class Elements(html.parser.HTMLParser):
    """The JSON of the page, and every tag in it."""

    def __init__(self, page):
        super().__init__()
        self.scripts, self.tags, self.inside = {}, [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = dict(attributes).get("id", "code") if tag == "script" else None

    def handle_data(self, data):
        if self.inside:
            self.scripts[self.inside] = self.scripts.get(self.inside, "") + data

    def handle_endtag(self, tag):
        self.inside = None


class Server(http.server.ThreadingHTTPServer):
    """Serves the pages, and counts what is asked of it."""

    def __init__(self, folder):
        self.asked = []
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.asked.append(self.path)
                super().do_GET()

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def problems_of(name, page, verdict, browser, server):
    elements = Elements(page)
    curves = json.loads(elements.scripts["curves"])
    rows = list(zip(*curves["memory"]["bytes"]))
    largest = max(map(sum, rows), default=0)
    peak = verdict["memory"]["peak_bytes"]
    if largest != (peak if isinstance(peak, int) else 0):
        yield f"the largest value is {largest}, the peak {peak}"
    if json.loads(elements.scripts["verdict"]) != verdict:
        yield "the JSON inside is another verdict"
    if len(elements.scripts) != 3 or elements.tags.count("script") != 3 or "img" in elements.tags:
        yield f"{elements.tags.count('script')} scripts"
    if not browser:
        return
    server.asked.clear()
    ran = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--dump-dom",
            f"http://127.0.0.1:{server.server_port}/{name}.html",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if 'data-drawn="yes"' not in ran.stdout:
        yield "nothing was drawn"
    plots = ran.stdout.count('class="u-wrap"')
    expected = len(curves["counts"]) + bool(rows)
    if plots != expected:
        yield f"{plots} plots of {expected}"
    console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line and "favicon" not in line]
    if console:
        yield f"console: {console[0]}"
    asked = [path for path in server.asked if path not in (f"/{name}.html", "/favicon.ico")]
    if asked:
        yield f"it asks for {asked}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--recordings", help="a folder of recordings, whose pages are checked as well")
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    failed = checked = 0
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "ULLAGE_HOME": f"{scratch}/home"}
        server = Server(scratch)
        runs = []
        for number, code in enumerate((HOSTILE, "x = [bytearray(60 << 20)]\nimport time\ntime.sleep(1.2)")):
            name, recording = f"recorded-{number}", f"{scratch}/recorded-{number}"
            command = [arguments.ullage, "run", "--quiet", "--record", recording, "--html", f"{scratch}/{name}.html"]
            job = [arguments.python, "-c", code, "</script><script>alert(1)</script>"]
            status = subprocess.run([*command, "--", *job], env=environment, stderr=subprocess.DEVNULL).returncode
            plain = subprocess.run(job, stderr=subprocess.DEVNULL).returncode
            if status != plain:
                print(f"WRONG {name}: exit status {status}, not {plain}")
                failed += 1
            runs.append((name, recording))
        if arguments.recordings:
            for folder in sorted(os.listdir(arguments.recordings)):
                path = os.path.join(arguments.recordings, folder)
                if os.path.exists(os.path.join(path, "run.json")):
                    runs.append((folder, path))
        for name, recording in runs:
            file = f"{scratch}/{name}.html"
            said = subprocess.run(
                [arguments.ullage, "report", "--json", recording], env=environment, capture_output=True, text=True
            )
            subprocess.run([arguments.ullage, "report", "--html", file, recording], env=environment, check=True)
            with open(file) as page:
                problems = list(problems_of(name, page.read(), json.loads(said.stdout), browser, server))
            checked += 1
            failed += bool(problems)
            for problem in problems:
                print(f"WRONG {name}: {problem}")
    where = "in Chromium" if browser else "without a browser: there is no chromium"
    print(f"{checked} pages, {failed} wrong, {where}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
