"""Environments in processes of their own, which are stepped together over pipes"""

import multiprocessing

import numpy as np


def serve(remote, parent_remote, make):
    parent_remote.close()
    env = make()
    while True:
        try:
            command, data = remote.recv()
        except EOFError:
            return
        if command == "step":
            observation, reward, done, info = env.step(data)
            if done:
                info["terminal_observation"], observation = observation, env.reset()
            remote.send((observation, reward, done, info))
        elif command == "reset":
            remote.send(env.reset())
        else:
            remote.close()
            return


class SubprocVecEnv:
    def __init__(self, makers):
        context = multiprocessing.get_context("forkserver")
        self.remotes, work_remotes = zip(*[context.Pipe() for _ in makers])
        self.processes = []
        for remote, work_remote, make in zip(self.remotes, work_remotes, makers):
            process = context.Process(target=serve, args=(work_remote, remote, make), daemon=True)
            process.start()
            self.processes.append(process)
            work_remote.close()

    def reset(self):
        for remote in self.remotes:
            remote.send(("reset", None))
        return np.stack([remote.recv() for remote in self.remotes])

    def step(self, actions):
        for remote, action in zip(self.remotes, actions):
            remote.send(("step", action))
        observations, rewards, dones, infos = zip(*[remote.recv() for remote in self.remotes])
        return np.stack(observations), np.array(rewards, np.float32), np.array(dones), infos

    def close(self):
        for remote in self.remotes:
            remote.send(("close", None))
        for process in self.processes:
            process.join()
