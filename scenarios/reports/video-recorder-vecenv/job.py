"""SubprocVecEnv with a VecVideoRecorder whose trigger is always true: it records from the first step, and its list of frames grows."""

import multiprocessing as mp
import time

import numpy as np
import torch


class LunarLander:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.sky = self.rng.integers(0, 40, (260, 380, 3), np.uint8)
        self.reset()

    def reset(self):
        self.state = np.array([0.0, 1.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], np.float32)
        self.t = 0
        return self.state

    def step(self, action):
        self.state = self.state + self.rng.normal(0, 0.01, 8).astype(np.float32)
        self.state[0] += 0.02 * (action - 1)
        self.t += 1
        done = self.t >= 400
        return (self.reset() if done else self.state), -abs(float(self.state[0])), done

    def render(self):
        frame = self.sky.copy()
        x, y = int(190 + 80 * self.state[0]) % 370, int(250 - 100 * self.state[1]) % 250
        frame[y : y + 10, x : x + 10] = 255
        frame[250:] = 120
        return frame


def _worker(remote, parent_remote, seed):
    parent_remote.close()
    env = LunarLander(seed)
    while True:
        try:
            cmd, data = remote.recv()
        except EOFError:
            break
        if cmd == "step":
            remote.send(env.step(data))
        elif cmd == "reset":
            remote.send(env.reset())
        elif cmd == "render":
            remote.send(env.render())
        elif cmd == "close":
            remote.close()
            break


class SubprocVecEnv:
    def __init__(self, n_envs):
        ctx = mp.get_context("forkserver")
        self.remotes, self.work_remotes = zip(*[ctx.Pipe() for _ in range(n_envs)])
        self.processes = []
        for seed, (work_remote, remote) in enumerate(zip(self.work_remotes, self.remotes)):
            process = ctx.Process(target=_worker, args=(work_remote, remote, seed), daemon=True)
            process.start()
            self.processes.append(process)
            work_remote.close()

    def ask(self, cmd, data=None):
        for n, remote in enumerate(self.remotes):
            remote.send((cmd, None if data is None else data[n]))
        return [remote.recv() for remote in self.remotes]

    def close(self):
        for remote in self.remotes:
            remote.send(("close", None))
        for process in self.processes:
            process.join()


class VecVideoRecorder:
    def __init__(self, venv, record_video_trigger, video_length=200):
        self.venv, self.record_video_trigger, self.video_length = venv, record_video_trigger, video_length
        self.recording, self.step_id, self.recorded_frames = False, 0, []

    def reset(self):
        return np.stack(self.venv.ask("reset"))

    def step(self, actions):
        obs, rewards, dones = zip(*self.venv.ask("step", actions))
        self.step_id += 1
        if self.record_video_trigger(self.step_id):
            self.recording = True
        if self.recording:
            self.recorded_frames.append(np.concatenate(self.venv.ask("render"), axis=1))
        return np.stack(obs), np.array(rewards), np.array(dones)


def main():
    torch.set_num_threads(1)
    n_envs = 3
    env = VecVideoRecorder(SubprocVecEnv(n_envs), record_video_trigger=lambda x: True)
    policy = torch.nn.Sequential(torch.nn.Linear(8, 768), torch.nn.Tanh(), torch.nn.Linear(768, 768), torch.nn.Tanh())
    head = torch.nn.Linear(768, 3)
    optimizer = torch.optim.SGD([*policy.parameters(), *head.parameters()], lr=1e-4)
    obs = env.reset()
    until = time.monotonic() + 28
    for counter in range(1100):
        if time.monotonic() > until:
            break
        logits = head(policy(torch.from_numpy(obs)))
        actions = torch.distributions.Categorical(logits=logits).sample()
        obs, rewards, dones = env.step(actions.tolist())
        chosen = logits.log_softmax(-1).gather(1, actions[:, None])[:, 0]
        loss = -(chosen * torch.from_numpy(rewards).float()).mean()
        batch = torch.from_numpy(obs).repeat(64, 1)
        loss = loss + 1e-3 * head(policy(batch)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if counter % 100 == 0:
            print(f"{counter} frames have passed, loss {loss.item():.3f}", flush=True)
    env.venv.close()


if __name__ == "__main__":
    main()
