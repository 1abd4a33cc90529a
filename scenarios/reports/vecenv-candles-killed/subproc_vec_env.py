"""Environments in processes, which take commands from pipes"""

import multiprocessing

import numpy as np


def worker(remote, parent_remote, env_fn):
    parent_remote.close()
    env = env_fn()
    while True:
        try:
            command, data = remote.recv()
        except EOFError:
            break
        if command == "step":
            remote.send(env.step(data))
        elif command == "reset":
            remote.send(env.reset())
        elif command == "close":
            remote.close()
            break


class SubprocVecEnv:
    def __init__(self, env_fns, start_method="forkserver"):
        context = multiprocessing.get_context(start_method)
        self.num_envs = len(env_fns)
        self.remotes, self.processes = [], []
        for env_fn in env_fns:
            remote, work_remote = context.Pipe()
            process = context.Process(target=worker, args=(work_remote, remote, env_fn), daemon=True)
            process.start()
            work_remote.close()
            self.remotes.append(remote)
            self.processes.append(process)

    def reset(self):
        for remote in self.remotes:
            remote.send(("reset", None))
        return np.stack([remote.recv() for remote in self.remotes])

    def step(self, actions):
        for remote, action in zip(self.remotes, actions):
            remote.send(("step", int(action)))
        observations, rewards, dones = zip(*[remote.recv() for remote in self.remotes])
        return np.stack(observations), np.array(rewards, np.float32), np.array(dones)

    def close(self):
        for remote in self.remotes:
            remote.send(("close", None))
        for process in self.processes:
            process.join()
        for remote in self.remotes:
            remote.close()
