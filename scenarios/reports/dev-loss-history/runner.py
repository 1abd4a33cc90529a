"""Fits a neural state space model to recorded rooms, in a process for each building"""

import multiprocessing
import queue

from trainer import fit


def main():
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    for building in ("office-3",):
        process = context.Process(target=fit, args=(building, 27.0, reports), name=building)
        process.start()
        while process.is_alive():
            try:
                epoch, train, dev = reports.get(timeout=2.0)
            except queue.Empty:
                continue
            print(f"{building} epoch {epoch}: train {train:.4f} dev {dev:.4f}", flush=True)
        process.join()
        print(f"{building} ended with {process.exitcode}", flush=True)


if __name__ == "__main__":
    main()
