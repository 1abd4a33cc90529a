"""Executes a template notebook for each region, as papermill does, and compares the results"""

import copy
import json
import os
import subprocess
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 25.0
TEMPLATE = {
    "metadata": {"kernelspec": {"name": "python3"}},
    "cells": [
        "import time\nimport numpy as np",
        "region = 0",
        "rng = np.random.default_rng(region)\nweather = rng.standard_normal((1600, 400)).cumsum(0)\n"
        "anomalies = weather - weather.mean(0)",
        "started, shares = time.monotonic(), []\nwhile time.monotonic() - started < 1.8:\n"
        "    sample = anomalies[rng.integers(0, len(anomalies), len(anomalies))]\n"
        "    values = np.linalg.eigvalsh(sample.T @ sample)\n"
        "    shares.append(float(values[-3:].sum() / values.sum()))",
        "result = {'region': region, 'mean': float(np.mean(shares)), 'spread': float(np.std(shares))}",
    ],
}


class NotebookClient:
    def __init__(self, notebook):
        self.notebook = notebook
        self.kernel = None

    def setup_kernel(self):
        command = [sys.executable, os.path.join(HERE, "kernel.py")]
        self.kernel = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def execute(self):
        self.setup_kernel()
        outputs = []
        for number, source in enumerate(self.notebook["cells"]):
            self.kernel.stdin.write(json.dumps({"number": number, "source": source}) + "\n")
            self.kernel.stdin.flush()
            answer = json.loads(self.kernel.stdout.readline())
            if answer["status"] != "ok":
                raise RuntimeError(answer["traceback"])
            outputs.append(answer.get("result"))
        self.notebook["outputs"] = outputs
        return self.notebook


def parameterize(template, **parameters):
    notebook = copy.deepcopy(template)
    notebook["cells"][1] = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    return notebook


def main():
    torch.set_num_threads(1)
    started, clients = time.monotonic(), []
    while time.monotonic() - started < SECONDS:
        client = NotebookClient(parameterize(TEMPLATE, region=len(clients)))
        client.execute()
        clients.append(client)
        result = client.notebook["outputs"][-1]
        print(f"region {result['region']}: {result['mean']:.4f} +- {result['spread']:.4f}", flush=True)
    means = torch.tensor([client.notebook["outputs"][-1]["mean"] for client in clients])
    print(f"{len(clients)} notebooks, {means.mean():.4f}, {means.std():.4f}", flush=True)


if __name__ == "__main__":
    main()
