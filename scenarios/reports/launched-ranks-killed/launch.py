"""A launcher of its own, as DeepSpeed's and many labs' are: Popen with RANK and LOCAL_RANK in the environment."""

import os
import subprocess
import sys

WORLD = 3
ranks = []
for rank in range(WORLD):
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD)}
    job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")
    ranks.append(subprocess.Popen([sys.executable, job], env=environment))
codes = [rank.wait() for rank in ranks]
sys.exit(max(abs(code) for code in codes))
