"""Starts a rank for each device, and ends them all when one of them fails"""

import os
import shutil
import subprocess
import sys

import numpy as np

FILES, EVENTS, PARTICLES, FEATURES = 420, 2, 900, 12


def write_files(folder):
    rng = np.random.default_rng(1)
    for number in range(FILES):
        events = rng.standard_normal((EVENTS, PARTICLES, FEATURES)).astype(np.float32)
        events.tofile(os.path.join(folder, f"cld_edm_ttbar_pf-{number // 42}-{number % 42:05d}.array_record"))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.abspath("tensorflow_datasets")
    os.makedirs(folder)
    write_files(folder)
    ranks = {}
    for rank in range(2):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen([sys.executable, os.path.join(here, "train.py"), folder], env=environment)
        ranks[process.pid] = process
    code = 0
    while ranks and code == 0:
        pid, status = os.wait()
        process = ranks.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        code = process.returncode
        print(f"rank process {pid} ended with {code}", flush=True)
    for process in ranks.values():
        process.terminate()
    for process in ranks.values():
        process.wait()
    shutil.rmtree(folder)
    sys.exit(1 if code else 0)


if __name__ == "__main__":
    main()
