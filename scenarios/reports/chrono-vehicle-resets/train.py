"""Policy gradients over vector environments in processes of a forkserver."""

import multiprocessing

import envs
import numpy as np

ENVS = 2
UPDATES = 340
HORIZON = 128


def main():
    from agent import Agent

    context = multiprocessing.get_context("forkserver")
    remotes, processes = [], []
    for seed in range(ENVS):
        ours, theirs = context.Pipe()
        process = context.Process(target=envs.serve, args=(theirs, seed), daemon=True)
        process.start()
        theirs.close()
        remotes.append(ours)
        processes.append(process)

    agent = Agent()
    for remote in remotes:
        remote.send(("reset", None))
    states = np.stack([remote.recv() for remote in remotes])
    for update in range(UPDATES):
        rewards = []
        for _ in range(HORIZON):
            for remote, action in zip(remotes, agent.act(states), strict=True):
                remote.send(("step", action))
            answers = [remote.recv() for remote in remotes]
            states = np.stack([state for state, _, _ in answers])
            rewards.append([reward for _, reward, _ in answers])
        agent.learn(rewards)
        if update % 20 == 0:
            print(f"update {update}: mean reward {np.mean(rewards):.2f}", flush=True)
    for remote, process in zip(remotes, processes, strict=True):
        remote.send(("close", None))
        process.join()


if __name__ == "__main__":
    main()
