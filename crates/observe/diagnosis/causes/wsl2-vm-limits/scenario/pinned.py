"""Fails as torch does where the driver gives no pinned memory."""

import time

time.sleep(2)
raise RuntimeError(
    "CUDA error: out of memory (cudaHostAlloc)\nCUDA kernel errors might be asynchronously reported at some other API "
    "call, so the stacktrace below might be incorrect."
)
