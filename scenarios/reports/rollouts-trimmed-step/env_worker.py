"""A worker with an environment: plays the episode it is asked for, and answers with the whole trajectory"""

import json
import random
import sys
import time

TURNS, TOKENS, WORDS = 6, 1500, 50_000


def episode(number, seconds):
    source, turns = random.Random(number), []
    until = time.monotonic() + seconds
    for turn in range(TURNS):
        tokens = [source.randrange(WORDS) for _ in range(TOKENS)]
        turns.append(
            {
                "role": "assistant" if turn % 2 else "user",
                "content": " ".join(map(str, tokens[: TOKENS // 2])),
                "token_ids": tokens,
                "logprobs": [round(-source.expovariate(2.0), 5) for _ in range(TOKENS)],
            }
        )
    reward = 0.0
    while time.monotonic() < until or not reward:
        reward = sum(sorted(turns[-1]["token_ids"]) == turn["token_ids"] for turn in turns) + source.random()
    return {"example": number, "turns": turns, "reward": reward}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(episode(request["example"], request["seconds"])), flush=True)
