"""The app: records, transcribes segment by segment, and goes when its user quits it"""

import os
import sys
import time

import numpy as np

from engine import InferenceEngine

SESSION_S = 4.0


class App:
    def __init__(self, session, pids):
        self.session = session
        self.engine = InferenceEngine(pids)
        self.microphone = np.random.default_rng(session)
        self.lines = []

    def record(self):
        return self.microphone.standard_normal((100, 80), dtype=np.float32)

    def run(self):
        self.lines.append(self.engine.submit(self.record()).result())
        end = time.monotonic() + SESSION_S
        while time.monotonic() < end:
            self.lines.append(self.engine.submit(self.record()).result())
        self.quit()

    def quit(self):
        words = sum(len(line) for line in self.lines)
        print(f"session {self.session}: {len(self.lines)} segments, {words} tokens", flush=True)
        # As the toolkit does it: the run loop ends the process.
        os._exit(0)


def main():
    App(int(sys.argv[1]), sys.argv[2]).run()


if __name__ == "__main__":
    main()
