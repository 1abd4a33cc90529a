"""Searches the learning rate and the width of a network by jobs of the cluster, one after the other"""

import sys

import torch

import kube

TRIALS = 40


def main():
    kube.Configuration.port = int(sys.argv[1])
    batch = kube.BatchApi(kube.ApiClient())
    points = torch.quasirandom.SobolEngine(2, scramble=True, seed=7).draw(TRIALS)
    best = (float("inf"), None)
    for number, (rate, width) in enumerate(points.tolist()):
        job = {"name": f"trial-{number}", "lr": 10 ** (-3 + 2.5 * rate), "width": 16 + 240 * width}
        watch = kube.Watch()
        for event in watch.stream(batch.run_job, job):
            status = event["object"].status
            if status.phase == "Succeeded":
                best = min(best, (status.loss, job["name"]))
                print(f"{job['name']}: loss {status.loss:.4f}, best is {best[1]}", flush=True)
    print(f"best of {TRIALS}: {best}", flush=True)


if __name__ == "__main__":
    main()
