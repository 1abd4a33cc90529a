"""Does watching hold up the job's own mmaps on this kernel? With --prober, because it takes minutes.

The same prober by turns: alone, under `ullage run`, and beside a reader of smaps_rollup, which walks all pages under
the lock that mmap needs. Emulation has delays of its own, so that the turns are compared with each other, and the case
proves nothing where the reader does not show: as often late, and by as much, as its reads take here.
"""

import json
import os
import statistics
import threading
import time

from guest import ULLAGE, finish, job, read, run, start
from registry import case

MIB, SECONDS, HERTZ, TURNS = 320, 20, 200, 3
REPORT = "/tmp/prober.json"


def read_pages(pid, stop, took):
    """Once a second; `took`: milliseconds of each read."""
    while not stop.wait(1):
        begun = time.monotonic()
        read(f"/proc/{pid}/smaps_rollup")
        took.append(1000 * (time.monotonic() - begun))


def turn(kind, took):
    argv = job("prober", REPORT, MIB, SECONDS, HERTZ)
    if kind == "watched":
        ended = run([ULLAGE, "run", "-q", "--", *argv], SECONDS + 60)
    else:
        process, stop = start(argv), threading.Event()
        if kind == "reader":
            threading.Thread(target=read_pages, args=(process.pid, stop, took), daemon=True).start()
        ended = finish(process, SECONDS + 60)
        stop.set()
    assert ended.code == 0, ended.err[-300:]
    said = json.loads(read(REPORT))
    os.unlink(REPORT)
    return said


@case("prober: mmap and munmap, watched and unwatched by turns", needs_ullage=True)
def prober(artifacts):
    seen, took = {kind: [] for kind in ("alone", "watched", "reader")}, []
    for _ in range(TURNS):
        for kind, turns in seen.items():
            turns.append(turn(kind, took))
    artifacts["turns.json"] = json.dumps({**seen, "reads_ms": took}, indent=1)
    late = {kind: sum(one["late"] for one in turns) for kind, turns in seen.items()}
    worst = {kind: [round(one["worst_ms"], 1) for one in turns] for kind, turns in seen.items()}
    probes = sum(one["probes"] for one in seen["alone"])
    told = f"of {probes} probes each, over 5 ms: {late}; worst of each turn, ms: {worst}"
    # Counts of rare delays scatter by their root.
    slack = 3 * (late["alone"] + 1) ** 0.5
    yield "the prober sees a reader of smaps_rollup", late["reader"] > late["alone"] + slack, told
    usual = statistics.median(took)
    told_reads = f"{len(took)} reads of {usual:.1f} ms in the middle; {told}"
    yield "and is held up by as long as a read takes", min(worst["reader"]) >= usual / 2 > 2.5, told_reads
    yield "delays over 5 ms are no more frequent when watched", late["watched"] <= late["alone"] + slack, told
