"""Collects the rollouts of each step from the workers, and ships them to the trainer as one batch"""

import asyncio
import ctypes
import gc
import json
import os
import sys
import time

import numpy as np

SECONDS, WORKERS, EXAMPLES, SAMPLES, ROLLOUT_S = 27.0, 2, 30, 6, 0.014
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "env_worker.py")


def trim_process_memory():
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (AttributeError, OSError):
        pass


async def rollout(worker, example):
    worker.stdin.write(json.dumps({"example": example, "seconds": ROLLOUT_S}).encode() + b"\n")
    await worker.stdin.drain()
    raw = await worker.stdout.readline()
    return {**json.loads(raw), "raw": raw}


async def collect(workers, step):
    wanted = [step * EXAMPLES * SAMPLES + number for number in range(EXAMPLES * SAMPLES)]
    rollouts = []

    async def serve(worker):
        while wanted:
            rollouts.append(await rollout(worker, wanted.pop()))

    await asyncio.gather(*(serve(worker) for worker in workers))
    return rollouts


def flat(one, name):
    return [value for turn in one["turns"] for value in turn[name]]


def finalize_train_batch(rollouts, folder, step):
    rollouts.sort(key=lambda one: one["example"])
    rewards = np.array([one["reward"] for one in rollouts]).reshape(EXAMPLES, SAMPLES)
    advantages = (rewards - rewards.mean(1, keepdims=True)).ravel()
    tokens = np.array([flat(one, "token_ids") for one in rollouts], np.int32)
    logprobs = np.array([flat(one, "logprobs") for one in rollouts], np.float32)
    path = os.path.join(folder, f"step_{step}.npz")
    np.savez(path, tokens=tokens, logprobs=logprobs, advantages=advantages.astype(np.float32))
    print(path, flush=True)
    size = sum(len(one["raw"]) for one in rollouts)
    print(f"step {step}: reward {rewards.mean():.3f}, {size} bytes", file=sys.stderr)


async def main():
    folder = sys.argv[1]
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, WORKER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**22
        )
        for _ in range(WORKERS)
    ]
    begin, step = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        rollouts = await collect(workers, step)
        finalize_train_batch(rollouts, folder, step)
        del rollouts
        trim_process_memory()
        step += 1
    for worker in workers:
        worker.stdin.close()
        await worker.wait()


if __name__ == "__main__":
    asyncio.run(main())
