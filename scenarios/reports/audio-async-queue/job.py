"""The sound of another program, captured by a recorder process, as an asynchronous iterator of chunks."""

import asyncio
import subprocess
import sys
import threading

import numpy as np

CHUNK = 480_000
CHUNKS = 900

# Stands for pw-record: raw 32-bit samples at a steady rate.
RECORDER = f"""
import os, sys, time
next_chunk = time.monotonic()
for _ in range({CHUNKS}):
    sys.stdout.buffer.write(os.urandom(4096) * {CHUNK // 4096} + bytes({CHUNK % 4096}))
    sys.stdout.buffer.flush()
    next_chunk += 1 / 36
    time.sleep(max(0, next_chunk - time.monotonic()))
"""


class ProcessAudioCapture:
    def __init__(self):
        self._async_queue = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._recorder = subprocess.Popen([sys.executable, "-c", RECORDER], stdout=subprocess.PIPE)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._capture, daemon=True)
        self._thread.start()

    def _capture(self):
        while chunk := self._recorder.stdout.read(CHUNK):
            self._loop.call_soon_threadsafe(self._async_queue.put_nowait, chunk)
        self._stopped.set()

    @property
    def running(self):
        return not self._stopped.is_set()

    async def iter_chunks(self):
        while self.running:
            yield await self._async_queue.get()

    def close(self):
        self._recorder.wait()
        self._thread.join()


async def transcribe(samples, window):
    """A remote recogniser: the spectrum is made here, the words come back over the network."""
    frames = samples[: samples.size // window.size * window.size].reshape(-1, window.size)
    energy = np.abs(np.fft.rfft(frames * window, axis=1)).mean()
    await asyncio.sleep(0.12)
    return float(energy)


async def main():
    capture = ProcessAudioCapture()
    window = np.hanning(1000).astype(np.float32)
    heard, loudest = 0, 0.0
    async for chunk in capture.iter_chunks():
        samples = np.frombuffer(chunk, np.int16).astype(np.float32) / 32768
        loudest = max(loudest, await transcribe(samples, window))
        heard += 1
        if heard % 20 == 0:
            print(f"{heard} chunks heard, {capture._async_queue.qsize()} wait, loudest {loudest:.2f}", flush=True)
    capture.close()


if __name__ == "__main__":
    asyncio.run(main())
