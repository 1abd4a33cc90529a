"""The other side of a call: frames of 100 ms of stereo audio on stdout"""

import sys
import time

import numpy as np

call, seconds = int(sys.argv[1]), float(sys.argv[2])
generator = np.random.default_rng(call)
started = time.monotonic()
while time.monotonic() - started < seconds:
    voice = np.sin(np.arange(4800) * generator.uniform(0.01, 0.05))[:, None] * generator.uniform(0, 9000)
    frame = (voice + generator.normal(0, 300, (4800, 2))).astype(np.int16)
    sys.stdout.buffer.write(frame.tobytes())
sys.stdout.buffer.flush()
