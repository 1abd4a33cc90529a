"""Forward solutions for several subjects; the boundary element solver is a program of its own"""

import os
import subprocess
import sys

import torch

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
SUBJECTS = {"sample": 320, "fsaverage": 480, "morph-a": 640, "morph-b": 5120}


def run_subprocess(command):
    """Runs a command and returns what it printed; an error if it failed"""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.wait()
    out, err = process.stdout.read(), process.stderr.read()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command, out, err)
    return out, err


def lead_field(out, sensors=96):
    rows = [line.split() for line in out.splitlines() if line.startswith("node ")]
    potentials = torch.tensor([[float(row[2]), float(row[4])] for row in rows])
    generator = torch.Generator().manual_seed(len(rows))
    gain = torch.randn(sensors, len(rows), generator=generator) * potentials[:, 1]
    for _ in range(60):
        gain = torch.linalg.svd(gain, full_matrices=False)[2][:sensors] * potentials[:, 0].abs().sqrt()
    return gain


def main():
    for subject, triangles in SUBJECTS.items():
        print(f"{subject}: {triangles} triangles", flush=True)
        out, _ = run_subprocess([sys.executable, os.path.join(HERE, "bem.py"), str(triangles)])
        gain = lead_field(out)
        print(f"{subject}: {gain.shape[1]} nodes, norm {gain.norm():.3f}", flush=True)


if __name__ == "__main__":
    main()
