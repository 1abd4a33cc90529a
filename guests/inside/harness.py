"""Runs the cases inside the guest and writes one JSON object a line to the second serial port.

A case is a function in cases_*.py decorated with @case. It yields checks, (what, right or not, detail); a
check that is wrong does not end the case, an exception does.
"""

import base64
import importlib
import json
import os
import sys
import time
import traceback

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
from guest import HAVE_ULLAGE, say  # noqa: E402
from registry import CASES  # noqa: E402


def tell(what):
    sys.stdout.write("@ullage " + json.dumps(what, default=as_base64) + "\n")
    sys.stdout.flush()


def as_base64(value):
    return {"base64": base64.b64encode(value).decode()}


def run_case(entry):
    started = time.monotonic()
    checks, artifacts = [], {}
    try:
        for check in entry.function(artifacts):
            what, right, detail = (*check, "")[:3]
            checks.append({"what": what, "ok": bool(right), "detail": str(detail)[:1500]})
    except BaseException as error:  # the next case must run whatever this one met
        checks.append({"what": "ran to its end", "ok": False, "detail": traceback.format_exc()[-1500:]})
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
    return {"case": entry.name, "checks": checks, "seconds": time.monotonic() - started, "artifacts": artifacts}


def main():
    with open(f"{FOLDER}/settings.json") as file:
        settings = json.load(file)
    for module in settings["modules"]:
        importlib.import_module(module)
    only = settings["only"]
    chosen = [c for c in CASES if not only or any(word in c.name for word in only)]
    skipped = [c.name for c in chosen if c.needs_ullage and not HAVE_ULLAGE]
    chosen = [c for c in chosen if not (c.needs_ullage and not HAVE_ULLAGE)]
    tell({"start": [c.name for c in chosen], "skipped": skipped, "kernel": os.uname().release, "up": time.monotonic()})
    for entry in chosen:
        say(f"case {entry.name}")
        tell(run_case(entry))
    tell({"end": True, "up": time.monotonic()})


main()
