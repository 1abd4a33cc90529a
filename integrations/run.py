#!/usr/bin/env python3
"""Do the loaders of other frameworks train the same over ullage's arena, and do their batches really travel in it?

Each job (the other files here) is a small training run on the CPU. It is run once without ullage, by fork. Then for
each start method twice over the arena: `context`, where the loader is given an `ullage.context` as its
`multiprocessing_context`, and `install`, after `ullage.install()`.

A case passes where every loss and the final weights are, bit for bit, those without ullage; every batch that the
trainer got had a tensor in the arena, and none lay in a segment of torch's; and no process of the job is left. The run
without ullage must find no batch in the arena: that is how the look is known to tell the two apart. With
ULLAGE_DISABLE=1 every case but those without ullage must fail.

    python integrations/run.py [--only NAME ...] [--methods fork,spawn,forkserver]
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = [sys.executable]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
# Name, file, variant, what starts it, and how many trainers write what they saw.
JOBS = [
    ("torchdata map", "torchdata_stateful.py", "map", PYTHON, 1),
    ("torchdata iterable", "torchdata_stateful.py", "iterable", PYTHON, 1),
    ("lightning one", "lightning_fit.py", "one", PYTHON, 1),
    ("lightning ddp", "lightning_fit.py", "ddp", PYTHON, 2),
    ("accelerate one", "accelerate_prepare.py", "one", PYTHON, 1),
    ("accelerate stateful", "accelerate_prepare.py", "stateful", PYTHON, 1),
    ("accelerate shard", "accelerate_prepare.py", "shard", TWO, 2),
    ("accelerate dispatch", "accelerate_prepare.py", "dispatch", TWO, 1),
    ("transformers", "transformers_trainer.py", "", PYTHON, 1),
]
SECONDS_EACH = 300
# Long, because Lightning does not wait for its second trainer, which may end seconds later.
GONE_WITHIN = 30.0


class Failed(Exception):
    pass


def expect(true, what):
    if not true:
        raise Failed(what)


def run(job, way, method):
    """Runs a job to its end; returns what each of its trainers wrote."""
    _, file, variant, starter, trainers = job
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONFAULTHANDLER": "1"}
    with tempfile.TemporaryDirectory() as out:
        command = [*starter, str(HERE / file), "--way", way, "--method", method, "--out", out]
        command += ["--variant", variant] if variant else []
        with tempfile.TemporaryFile("w+") as output:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
            )
            try:
                status = started.wait(SECONDS_EACH)
            except subprocess.TimeoutExpired:
                status = f"none after {SECONDS_EACH} s"
            left = status == 0 and not gone(started.pid)
            try:
                os.killpg(started.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            started.wait()
            output.seek(0)
            expect(status == 0, f"exit status {status}; its output ends\n{output.read()[-8000:]}")
        expect(not left, f"processes of the job are left {GONE_WITHIN:g} s after its end")
        files = sorted(pathlib.Path(out).iterdir())
        expect(len(files) == trainers, f"{len(files)} trainers wrote what they saw, not {trainers}")
        return [json.loads(file.read_text()) for file in files]


def gone(group):
    """Is no process of the group alive, within a while?"""
    deadline = time.monotonic() + GONE_WITHIN
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def check_plain(records):
    for record in records:
        expect(record["batches"] > 0 and record["losses"], "nothing was trained")
        expect(record["batches in the arena"] == 0, "without ullage, batches lie in its arena: the look is wrong")


def check(records, plain):
    for record, other in zip(records, plain):
        tensors, batches = record["tensors"], record["batches"]
        expect(
            record["batches in the arena"] == batches > 0 and not tensors["torch segment"] and not tensors["elsewhere"],
            f"{record['batches in the arena']} of {batches} batches lay in the arena; tensors: {tensors}",
        )
        expect(record["disagreed"] == 0, f"of {record['disagreed']} tensors ullage and the kernel say different places")
        expect(batches == other["batches"], f"{batches} batches, and {other['batches']} without ullage")
        expect(record["losses"] == other["losses"], "the losses are not those without ullage")
        expect(record["weights"] == other["weights"], "the final weights are not those without ullage")


def summary(records):
    batches = sum(record["batches"] for record in records)
    tensors = {where: sum(record["tensors"][where] for record in records) for where in records[0]["tensors"]}
    where = ", ".join(f"{count} {where}" for where, count in tensors.items() if count)
    return f"{batches:3} batches, tensors: {where}; weights {records[0]['weights'][:8]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], help="jobs whose name contains one of these")
    parser.add_argument("--methods", default="fork,spawn,forkserver")
    options = parser.parse_args()
    methods = options.methods.split(",")
    jobs = [job for job in JOBS if not options.only or any(word in job[0] for word in options.only)]

    cases = failed = 0
    began = time.monotonic()

    def attempt(job, way, method, plain):
        nonlocal failed
        start = time.monotonic()
        records = None
        try:
            records = run(job, way, method)
            if plain is None:
                check_plain(records)
            else:
                check(records, plain)
            said = f"ok      {summary(records)}"
        except Failed as error:
            failed += 1
            said, records = f"FAILED  {error}", None
        print(f"{job[0]:<20} {way:<8} {method:<11} {time.monotonic() - start:5.1f} s  {said}", flush=True)
        return records

    for job in jobs:
        cases += 1
        plain = attempt(job, "without", "fork", None)
        for method in methods if plain else []:
            for way in ("context", "install"):
                cases += 1
                attempt(job, way, method, plain)
    print(f"integrations: {cases} cases ran, {failed} failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed or not cases else 0)


if __name__ == "__main__":
    main()
