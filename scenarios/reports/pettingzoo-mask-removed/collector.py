"""A worker that collects episodes with the newest weights, and the trainer's side of it"""

import multiprocessing
import time
import traceback

import numpy as np
import torch
from policy import Policy
from pursuit import Pursuit
from wrapper import ParallelWrapper

COLLECT_S = 0.55


def episode(env, policy, max_cycles):
    observations, masks = env.reset(max_cycles)
    steps, done = [], False
    while not done:
        actions = policy.act(torch.from_numpy(observations), torch.from_numpy(masks)).numpy()
        seen = observations, masks
        observations, masks, rewards, done = env.step(actions)
        steps.append((*seen, actions, rewards))
    return [np.stack(parts) for parts in zip(*steps)]


def collect(pipe, seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    env, policy = ParallelWrapper(Pursuit(seed)), Policy()
    try:
        while (order := pipe.recv()) is not None:
            weights, max_cycles = order
            policy.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
            end, episodes = time.monotonic() + COLLECT_S, []
            while not episodes or time.monotonic() < end:
                episodes.append(episode(env, policy, max_cycles))
            pipe.send(episodes)
    except Exception:
        pipe.send(traceback.format_exc())


class Collector:
    def __init__(self, seed):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=collect, args=(end, seed), daemon=True)
        self.process.start()
        end.close()

    def rollout(self, policy, max_cycles):
        self.pipe.send(({name: tensor.numpy() for name, tensor in policy.state_dict().items()}, max_cycles))
        answer = self.pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"the collector's worker has failed:\n{answer}")
        return answer

    def shutdown(self):
        self.pipe.send(None)
        self.process.join()
