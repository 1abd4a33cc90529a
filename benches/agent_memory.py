#!/usr/bin/env python3
"""Does the agent un-share memory? The PSS of jobs that fork beside many Python objects, with the agent and without.

Each job stops at points where its workers are alive and wait; there the PSS of its processes is summed from outside, the
same way in both runs, and the largest sum of a run counts. Printed: the median over pairs of runs of (with agent) / (the same
command under `ullage run --no-agent`), job by job, and their geometric mean. Exit status 1 where one is above 1.03 or
the mean above 1.01. Jobs whose library is not installed are named and left out: give `--python` a venv with
lightning, transformers, accelerate and pandas beside torch.

    python benches/agent_memory.py --ullage .venv/bin/ullage --python VENV/bin/python [--times 3] [JOB ...]
"""

import argparse
import concurrent.futures
import gc
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

IN_ONE, IN_THE_MEAN = 1.03, 1.01

JOBS = {}


def job(function):
    JOBS[function.__name__] = function
    return function


# --- in the job -----------------------------------------------------------------------------------------


def point():
    """Here the parent's reader sums the PSS of all processes."""
    print("point", os.getpid(), flush=True)
    sys.stdin.readline()


def work(steps):
    """What makes the collector run, and with it the agent's looks: so many times in each run, however long it takes."""
    kept = []
    for _ in range(steps):
        kept.append([[n] for n in range(2000)])
        del kept[:-20]
        time.sleep(0.01)


def dicts(count):
    return [{"a": [n], "b": {"c": n}} for n in range(count)]


class Rows:
    """A dataset that keeps objects, of which an item reads one, or none."""

    def __init__(self, rows, reads):
        self.rows, self.reads = rows, reads

    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        import torch

        if index % 100 == 0:
            time.sleep(0.005)
        return torch.full((16,), float(len(self.rows[index]) if self.reads else index))


def through_a_loader(rows, reads):
    from torch.utils.data import DataLoader

    loader = DataLoader(Rows(rows, reads), batch_size=32, num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    for _ in range(2):
        for number, _ in enumerate(loader):
            if number == 400:
                point()
        work(50)
        point()


@job
def forked_and_idle():
    """Workers that never touch what they inherited, beside a parent that works."""
    rows = dicts(400_000)
    gc.collect()
    read, write = os.pipe()
    for _ in range(3):
        if os.fork() == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    work(500)
    point()
    os.close(write)
    for _ in range(3):
        os.wait()
    return rows


@job
def forked_and_at_work():
    """The workers allocate, so that their collector runs as well."""
    rows = dicts(400_000)
    gc.collect()
    ready, tell = os.pipe()
    read, write = os.pipe()
    for _ in range(3):
        if os.fork() == 0:
            os.close(write)
            work(500)
            os.write(tell, b"x")
            os.read(read, 1)
            os._exit(0)
    work(500)
    for _ in range(3):
        os.read(ready, 1)
    point()
    os.close(write)
    for _ in range(3):
        os.wait()
    return rows


@job
def loader_that_reads():
    through_a_loader([f"/data/images/{n:08d}.jpeg" for n in range(1_000_000)], True)


@job
def loader_beside_dicts():
    through_a_loader(dicts(400_000), False)


def _task(number):
    work(20)
    return number


@job
def pool_beside_tuples():
    rows = [(n, (n, str(n)), [n]) for n in range(400_000)]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(_task, range(24), chunksize=1)
        point()
        pool.map(_task, range(24), chunksize=1)
        point()
    return rows


class Record:
    def __init__(self, number):
        self.number, self.name, self.tags = number, f"record {number}", [number]


@job
def executor_beside_instances():
    rows = [Record(n) for n in range(400_000)]
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
        for _ in range(2):
            list(pool.map(_task, range(24)))
            point()
    return rows


@job
def pandas_frame():
    import pandas

    frame = pandas.DataFrame({"name": [f"name {n}" for n in range(500_000)], "tags": [[n] for n in range(500_000)]}, dtype=object)
    frame["kind"] = frame["name"].str.len().astype(object)
    frame.groupby("kind").size()
    through_a_loader(frame["name"].tolist(), False)
    return frame


@job
def lightning_fit():
    import lightning
    import torch
    from torch.utils.data import DataLoader

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(16, 4)

        def training_step(self, batch, number):
            return self.net(batch).sum()

        def validation_step(self, batch, number):
            self.net(batch).sum()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    class Points(lightning.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, number):
            if number == 300:
                point()

    rows = dicts(200_000)

    def loader():
        return DataLoader(Rows(rows, False), batch_size=32, num_workers=2, multiprocessing_context="fork", persistent_workers=True)

    with tempfile.TemporaryDirectory() as root:
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=3, default_root_dir=root, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=[Points()],
        )  # fmt: skip
        trainer.fit(Module(), loader(), loader())


@job
def transformers_trainer():
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    rows = dicts(200_000)

    class Sentences(torch.utils.data.Dataset):
        def __len__(self):
            return 3000

        def __getitem__(self, index):
            tokens = torch.randint(1, 50, (32,))
            return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": index % 3, "of": len(rows) and 0}

    class Points(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step in (150, 300, 450):
                point()

    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3
    )
    with tempfile.TemporaryDirectory() as root:
        transformers.Trainer(
            model=transformers.BertForSequenceClassification(config),
            args=transformers.TrainingArguments(
                output_dir=root, num_train_epochs=1, per_device_train_batch_size=6, dataloader_num_workers=2,
                save_strategy="no", use_cpu=True, report_to=[], disable_tqdm=True,
            ),
            train_dataset=Sentences(),
            callbacks=[Points()],
        ).train()  # fmt: skip


NEEDS = {"pandas_frame": "pandas", "lightning_fit": "lightning", "transformers_trainer": "transformers"}


# --- outside --------------------------------------------------------------------------------------------


def family(pid):
    """The process and all that it started, as far as they still live."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                for child in children.read().split():
                    found += family(int(child))
    except OSError:
        pass
    return found


def sum_of_pss(pid):
    total = 0
    for process in family(pid):
        with open(f"/proc/{process}/smaps_rollup") as rollup:
            total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    return total / 1024


def largest(command):
    """(MiB, points) of a run of a job."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "ULLAGE_HOME": home}
        running = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        sums = []
        for line in running.stdout:
            if line.startswith("point "):
                sums.append(sum_of_pss(int(line.split()[1])))
                running.stdin.write("\n")
                running.stdin.flush()
        if running.wait() != 0 or not sums:
            raise SystemExit(f"{command}: status {running.returncode}, {len(sums)} points")
    return max(sums), len(sums)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ullage")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--inside")
    parser.add_argument("--json")
    parser.add_argument("jobs", nargs="*")
    arguments = parser.parse_args()
    if arguments.inside:
        JOBS[arguments.inside]()
        return 0
    ratios, wrong = {}, 0
    for name in arguments.jobs or JOBS:
        needs = NEEDS.get(name)
        if needs and subprocess.run([arguments.python, "-c", f"import {needs}"], stderr=subprocess.DEVNULL).returncode:
            print(f"{name:28} left out: {needs} is not installed", flush=True)
            continue
        inside = [arguments.python, __file__, "--inside", name]
        pairs = []
        for _ in range(arguments.times):
            without, points = largest([arguments.ullage, "run", "-q", "--no-agent", "--", *inside])
            with_agent, _ = largest([arguments.ullage, "run", "-q", "--", *inside])
            pairs.append((without, with_agent))
        ratios[name] = statistics.median(after / before for before, after in pairs)
        wrong += ratios[name] > IN_ONE
        before, after = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
        too_much = "TOO MUCH" if ratios[name] > IN_ONE else ""
        print(f"{name:28} {before:8.0f} MiB {after:8.0f} MiB  {ratios[name]:.4f} at {points} points {too_much}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    wrong += mean > IN_THE_MEAN
    print(f"{len(ratios)} jobs, geometric mean {mean:.4f} (bound {IN_THE_MEAN}), {wrong} above a bound")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(ratios, file)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
