"""Does watching hold up the job's own mmaps on this kernel? With --prober, because it takes minutes.

What `benches/harmless.py` does, with its prober and its way to compare, in a process of 320 MiB: short blocks, watched
and not watched in turn, by stopping ullage. Emulation has delays of its own, which come in episodes, so that neighbours
are compared with each other. Then the same beside a reader of smaps_rollup, which walks all pages under the lock that
mmap needs: the case proves nothing where the prober is not held up by as long as such a read takes here.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import threading
import time

from bounds import by_chance
from guest import ULLAGE, job, read
from registry import case

MIB, HERTZ, PAIRS, BLOCK, SETTLE = 320, 200, 16, 5.0, 5.0


@contextlib.contextmanager
def prober(watched):
    argv = job("prober", MIB << 20, HERTZ)
    argv = [ULLAGE, "run", "-q", "--", *argv] if watched else argv
    env = dict(os.environ, ULLAGE_HOME="/runs")
    process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ready, pid = process.stdout.readline().split()
        assert ready == "ready"
        time.sleep(SETTLE)
        yield process, int(pid)
    finally:
        process.send_signal(signal.SIGCONT)
        process.stdin.close()
        process.wait(60)


def probe(process):
    process.stdin.write(f"{BLOCK}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def read_pages(pid, stop, took):
    """Twice a second; `took`: seconds of each read."""
    while not stop.wait(0.5):
        begun = time.monotonic()
        read(f"/proc/{pid}/smaps_rollup")
        took.append(time.monotonic() - begun)


def beside_a_reader():
    """Blocks beside the reader, and how long its reads took."""
    stop, took = threading.Event(), []
    with prober(False) as (process, pid):
        reader = threading.Thread(target=read_pages, args=(pid, stop, took))
        reader.start()
        blocks = [probe(process) for _ in range(3)]
        stop.set()
        reader.join()
    return blocks, took


@case("prober: mmap and munmap, watched and unwatched by turns", needs_ullage=True)
def mmap_is_not_held_up(artifacts):
    pairs = []
    with prober(True) as (process, _):
        for number in range(PAIRS):
            seen = {}
            for kind in ("plain", "watched") if number % 2 == 0 else ("watched", "plain"):
                os.kill(process.pid, signal.SIGCONT if kind == "watched" else signal.SIGSTOP)
                seen[kind] = probe(process)
            pairs.append(seen)
    blocks, took = beside_a_reader()
    artifacts["blocks.json"] = json.dumps({"pairs": pairs, "reader": blocks, "reads": took}, indent=1)
    usual, shortest = statistics.median(took), min(block["longest"] for block in blocks)
    told = f"{len(took)} reads of {1000 * usual:.1f} ms (median); each block has a delay of {1000 * shortest:.1f} ms"
    yield "a reader of smaps_rollup holds the prober up by as long as it reads", shortest >= usual / 2 > 0.005, told
    episodes = {kind: [seen[kind]["episodes"] for seen in pairs] for kind in ("watched", "plain")}
    chance = by_chance(list(zip(*episodes.values())))
    longest = {kind: f"{1000 * max(seen[kind]['longest'] for seen in pairs):.1f} ms" for kind in episodes}
    told = f"episodes of delays over 5 ms: {episodes}, longest {longest}; as many more by chance: {chance:.2f}"
    yield "watched, delays over 5 ms are not more frequent than chance explains", chance >= 0.05, told
