"""A worker of the challenge's server: takes submissions, runs the challenge's evaluation, and stores its result"""

import argparse
import json
import os
import traceback

import evaluation


def run_submission(name, images, folder):
    print(f"[{name}] running with {images} images", flush=True)
    try:
        metrics = evaluation.evaluate(name, images, folder)
        outcome = {"status": "finished", "metrics": {key: round(value, 4) for key, value in metrics.items()}}
    except Exception:
        text = traceback.format_exc()
        print(text, flush=True)
        outcome = {"status": "failed", "stderr": text[-400:]}
    with open(os.path.join(folder, "results", f"{name}.json"), "w") as file:
        json.dump(outcome, file)
    print(f"[{name}] {outcome['status']}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--submission", action="append", default=[])
    arguments = parser.parse_args()
    for submission in arguments.submission:
        name, _, images = submission.partition(":")
        run_submission(name, int(images), arguments.folder)
    print("the queue is empty", flush=True)


if __name__ == "__main__":
    main()
