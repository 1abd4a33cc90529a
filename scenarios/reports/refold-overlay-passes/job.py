"""An agent that works in one worktree after the other, and asks the index server to refresh their overlays"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKTREES, STEP_S = 14, 2.0


class Server:
    def __init__(self, path):
        self.numbers = itertools.count(1)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "server.py"), path, str(WORKTREES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        print(self.process.stdout.readline().strip(), flush=True)

    def refresh(self, worktree, revision):
        request = {"id": next(self.numbers), "worktree": worktree, "revision": revision}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def think(text, until):
    digest = text.encode()
    while time.monotonic() < until:
        digest = hashlib.sha256(digest * 20).digest()
    return digest.hex()[:8]


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.join(folder, "store.db"))
        begin = time.monotonic()
        for worktree in range(WORKTREES):
            result = server.refresh(worktree, worktree)
            # What it did before is looked at again
            server.refresh(worktree // 2, worktree)
            plan = think(result["digest"], begin + (worktree + 1) * STEP_S)
            print(f"worktree {worktree}: {result['changed']} chunks changed, plan {plan}", flush=True)
        return server.close()


if __name__ == "__main__":
    sys.exit(main())
