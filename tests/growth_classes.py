"""One word for each kind of growth: small real jobs that grow in one known way, and what `ullage run --json` calls it.

Each job is run with parameters drawn from its seed. Prints the confusion table. Fails where fewer than nine of ten words
are right, or where a job that keeps nothing is called a leak.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

JOBS = pathlib.Path(__file__).resolve().parent / "growth_jobs.py"

# What a job does: the words that are right for it.
EXPECTED = {
    "python-objects": {"live-python-objects"},
    "python-bytes": {"live-python-objects"},
    "native-blocks": {"live-native-blocks"},
    "tensors": {"live-tensors"},
    "tensors-loop": {"live-tensors"},
    "freed": {"freed-but-held"},
    "thread-arenas": {"freed-but-held"},
    "fork-workers": {"copy-on-write"},
    "queue-backlog": {"shared-memory-backlog"},
    "mapped-dataset": {"mapped-files"},
    "page-cache": {"page-cache"},
    "mappings": {"mapping-leak"},
    "descriptors": {"fd-leak"},
    "children": {"process-accumulation"},
    "page-tables": {"kernel-memory"},
    "warm-up": {"warm-up"},
    "plateau": {"plateau"},
    "still": {"none"},
    "train": {"none", "warm-up"},
}
LEAKS = {"live-python-objects", "live-native-blocks", "live-tensors", "live-growth", "mapping-leak", "fd-leak"}
KEEP_NOTHING = {"freed", "thread-arenas", "mapped-dataset", "page-cache", "warm-up", "plateau", "still", "train"}
NEEDED = 0.9
TRIM_WITHIN = 0.2


def run(ullage, python, job, seed, without_agent):
    draw = random.Random(f"{job}-{seed}")
    seconds = draw.uniform(22, 40)
    rate = draw.uniform(4, 12)  # MiB a second
    with tempfile.TemporaryDirectory(prefix="ullage-growth-") as folder:
        verdict = pathlib.Path(folder) / "verdict.json"
        agent = ["--no-agent"] if without_agent else []
        command = [ullage, "run", "-q", *agent, "--json", str(verdict), "--record", f"{folder}/run", "--"]
        command += [python, str(JOBS), job, f"{seconds:.1f}", f"{rate:.2f}", str(seed)]
        environment = {**os.environ, "ULLAGE_HOME": folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        if not verdict.exists():
            return {"class": "no verdict", "because": done.stderr[-300:]}
        growth = json.loads(verdict.read_text())["growth"]
        if done.returncode != 0:
            growth = {"class": f"exit {done.returncode}", "because": done.stderr[-300:]}
        return {"class": "missing", "because": str(growth), **growth, "seconds": seconds, "rate": rate}


def check_trim(python):
    """What the agent's look says that malloc_trim would give back, against what it gives."""
    done = subprocess.run(
        [python, str(JOBS), "trim", "0", "0", "0"], capture_output=True, text=True, check=True, timeout=120
    )
    good = True
    for line in done.stdout.splitlines():
        name, said, gave = line.split()
        off = abs(float(said) - float(gave)) / max(float(gave), 1.0)
        good &= off <= TRIM_WITHIN
        print(f"malloc_trim, {name}: said {float(said):.0f} MiB, gave {float(gave):.0f} MiB, {100 * off:.0f} % off")
    return good and bool(done.stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ullage", required=True)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--only", nargs="*", default=list(EXPECTED))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first-seed", type=int, default=1)
    options.add_argument("--together", type=int, default=1, help="jobs at a time")
    options.add_argument("--no-agent", action="store_true", help="print what is said without it; nothing is scored")
    asked = options.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    tasks = [(job, seed) for job in asked.only if job in EXPECTED for seed in seeds]
    table, wrong, leaks = collections.Counter(), [], []
    with concurrent.futures.ThreadPoolExecutor(asked.together) as pool:
        results = pool.map(lambda task: run(os.path.abspath(asked.ullage), asked.python, *task, asked.no_agent), tasks)
        for (job, seed), growth in zip(tasks, results):
            word = growth["class"]
            table[job, word] += 1
            right = word in EXPECTED[job]
            told = f"{growth.get('bytes', 0) / 2**20:.0f} MiB, {100 * growth.get('share', 0):.0f} %"
            print(f"{'ok  ' if right else 'FAIL'} {job} {seed}: {word} ({told})", flush=True)
            if not right:
                wrong.append((job, seed))
                print(f"       {growth['because']} {growth.get('parts', '')}", flush=True)
            if job in KEEP_NOTHING and word in LEAKS:
                leaks.append((job, seed, word))
    print("\nconfusion: job -> word x times")
    for job in asked.only:
        words = ", ".join(f"{word} x {count}" for (of, word), count in sorted(table.items()) if of == job)
        print(f"  {job:16} {words}")
    right = len(tasks) - len(wrong)
    print(f"\n{right} of {len(tasks)} right; called a leak and none: {len(leaks)} {leaks or ''}")
    if asked.no_agent:
        return 0
    trim = check_trim(asked.python)
    return 0 if right >= NEEDED * len(tasks) and not leaks and trim else 1


if __name__ == "__main__":
    sys.exit(main())
