"""Trains the classifier, then asks its task worker for the evaluation of scans that users upload"""

import multiprocessing
import sys

import torch

import nn_classifier


def task_worker(connection, weights_path):
    """Runs the tasks that come over the connection, one after the other."""
    torch.set_num_threads(1)
    model = nn_classifier.make_model()
    model.load_state_dict(torch.load(weights_path))
    tasks = {
        "evaluate_data": lambda seeds: nn_classifier.evaluate_many(model, seeds),
        "evaluate_image": lambda seed: nn_classifier.evaluate1(model, seed),
    }
    while True:
        name, argument = connection.recv()
        if name == "shutdown":
            break
        print(f"task miqa.core.tasks.{name} received", flush=True)
        connection.send(tasks[name](argument))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn_classifier.make_model()
    nn_classifier.train(model, 15.0)
    torch.save(model.state_dict(), "miqa.pth")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=task_worker, args=(theirs, "miqa.pth"), name="ForkPoolWorker-1", daemon=True)
    worker.start()
    theirs.close()
    try:
        for project in range(12):
            ours.send(("evaluate_data", range(project * 16, project * 16 + 16)))
            scores = ours.recv()
            print(f"project {project}: {sum(score > 0.5 for score in scores)} of {len(scores)} bad", flush=True)
        ours.send(("evaluate_image", 1001))
        print(f"uploaded scan: {ours.recv():.3f}", flush=True)
        ours.send(("shutdown", None))
    except (EOFError, ConnectionError):
        worker.join()
        print(f"task worker ended with {worker.exitcode}", file=sys.stderr, flush=True)
        sys.exit(1)
    worker.join()


if __name__ == "__main__":
    main()
