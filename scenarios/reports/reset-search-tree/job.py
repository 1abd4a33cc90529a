"""Starts the ranks: two that play against themselves, and one that trains on their games"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 3


def main():
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(RANKS):
            environment = {**os.environ, "RANK": str(rank), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            script = "train.py" if rank == 0 else "play.py"
            ranks.append(subprocess.Popen([sys.executable, os.path.join(HERE, script), folder], env=environment))
        statuses = [rank.wait() for rank in ranks]
    sys.exit(max(map(abs, statuses)))


if __name__ == "__main__":
    main()
