"""The inference server: samples completions for problems, a batch for each request"""

import json
import socket
import sys

import torch
from torch import nn

torch.set_num_threads(1)
VOCAB, WIDTH, PROMPT, COMPLETION = 2048, 64, 48, 320


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.cell = nn.Embedding(VOCAB, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 256)

    @torch.no_grad()
    def sample(self, prompts, generator):
        hidden = torch.zeros(len(prompts), WIDTH)
        for token in prompts.unbind(1):
            hidden = self.cell(self.tokens(token), hidden)
        shift = torch.randint(0, VOCAB - 256, (len(prompts),), generator=generator)
        ids, logprobs = [], []
        for _ in range(COMPLETION):
            scores = self.head(hidden).log_softmax(-1)
            noise = torch.empty_like(scores).exponential_(generator=generator)
            chosen = (scores - noise.log_()).argmax(1)
            ids.append(chosen + shift)
            logprobs.append(scores.gather(1, chosen[:, None]).squeeze(1))
            hidden = self.cell(self.tokens(ids[-1]), hidden)
        return torch.stack(ids, 1), torch.stack(logprobs, 1)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    policy = Policy().eval()
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        stream = connection.makefile("rw")
        for line in stream:
            problems = json.loads(line)
            prompts = torch.stack([(torch.arange(PROMPT) * 37 + 11 * problem) % VOCAB for problem in problems])
            ids, logprobs = policy.sample(prompts, generator)
            for problem, prompt, completion, values in zip(
                problems, prompts.tolist(), ids.tolist(), logprobs.tolist(), strict=True
            ):
                reward = float(sum(completion) % 3 == problem % 3)
                rollout = {
                    "problem": problem,
                    "prompt_ids": prompt,
                    "completion_ids": completion,
                    "completion_logprobs": values,
                    "reward": reward,
                }
                stream.write(json.dumps(rollout) + "\n")
            stream.write("\n")
            stream.flush()


if __name__ == "__main__":
    main()
