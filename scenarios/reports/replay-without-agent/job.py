"""A replay memory that grows with every episode, watched without the agent."""

import random

memory = []
for episode in range(420):
    frames = [random.randbytes(84 * 84 * 3) for _ in range(160)]
    memory.append(frames)
    score = 0
    for frame in frames:
        score += sum(frame)
    print(episode, score, flush=True)
