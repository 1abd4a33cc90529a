"""Converts episodes of a simulated robot arm to the LeRobot format, with the images embedded in the tables"""

import time

import numpy as np
import torch

from lerobot_dataset import LeRobotDataset

EPISODES, FRAMES, SIZE, EPISODE_S = 18, 60, 256, 1.4
FEATURES = {
    "image": {"dtype": "image", "shape": (SIZE, SIZE, 3)},
    "wrist_image": {"dtype": "image", "shape": (SIZE, SIZE, 3)},
    "state": {"dtype": "float32", "shape": (8,)},
    "actions": {"dtype": "float32", "shape": (7,)},
}


def episodes():
    """Stands in for the raw data set: steps with two cameras, the state and the action of the arm"""
    numbers = np.random.default_rng(7)
    ramp = np.linspace(0, 200, SIZE, dtype=np.float32)
    scenes = [
        (ramp[:, None, None] * weights + numbers.integers(0, 48, (SIZE, SIZE, 3))).astype(np.uint8)
        for weights in numbers.uniform(0.3, 1, (6, 1, 1, 3))
    ]
    for episode in range(EPISODES):
        scene, wrist = scenes[episode % 6], scenes[(episode + 2) % 6]
        state = numbers.standard_normal(8).astype(np.float32)
        for step in range(FRAMES):
            action = numbers.standard_normal(7).astype(np.float32)
            state[:7] += 0.05 * action
            images = np.roll(scene, 2 * step, 1), np.roll(wrist, 3 * step, 0)
            yield episode, step == FRAMES - 1, images, state.copy(), action


def smoothness(actions, until):
    """How well a linear model foretells the next action; fitted for the rest of the episode's time"""
    inputs, targets = torch.from_numpy(actions[:-1]), torch.from_numpy(actions[1:])
    weights, loss = torch.zeros(7, 7, requires_grad=True), None
    while loss is None or time.monotonic() < until:
        loss = (inputs @ weights - targets).pow(2).mean()
        (gradient,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            weights -= 0.05 * gradient
    return loss.item()


def main():
    torch.set_num_threads(1)
    dataset = LeRobotDataset.create("libero", FEATURES, image_writer_threads=2)
    until, actions = time.monotonic() + EPISODE_S, []
    for episode, last, (image, wrist_image), state, action in episodes():
        actions.append(action)
        dataset.add_frame({"image": image, "wrist_image": wrist_image, "state": state, "actions": action})
        if last:
            dataset.save_episode(task="put the bowl on the stove")
            loss = smoothness(np.stack(actions), until)
            print(f"episode {episode}: {dataset.num_frames} frames, loss {loss:.3f}", flush=True)
            until, actions = time.monotonic() + EPISODE_S, []
    dataset.stop_image_writer()
    dataset.consolidate()


if __name__ == "__main__":
    main()
