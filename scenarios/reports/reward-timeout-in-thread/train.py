"""RL on code answers: a policy is trained, and its rewards are computed by running each answer with a time limit."""

import signal
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

WARM_UP, STEPS, VOCABULARY, LENGTH = 300, 260, 64, 24


class TimeLimit:
    def __init__(self, seconds):
        self.seconds = seconds

    def expire(self, signum, frame):
        raise TimeoutError(f"no result after {self.seconds} s")

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.expire)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def run_answer(tokens):
    """Runs the program that the tokens stand for: a stack machine of additions and products."""
    stack = []
    for token in tokens:
        if token % 3 == 0 or len(stack) < 2:
            stack.append(token)
        else:
            left, right = stack.pop(), stack.pop()
            stack.append((left + right if token % 3 == 1 else left * right) % 997)
    return stack[-1]


def compute_score(tokens, wanted=500):
    try:
        with TimeLimit(2.0):
            return 1.0 - abs(run_answer(tokens) - wanted) / 997
    except TimeoutError:
        return 0.0


class RewardManager:
    def __init__(self, num_processes):
        self.num_processes = num_processes

    def __call__(self, answers):
        if self.num_processes <= 1:
            return torch.tensor([compute_score(answer) for answer in answers])
        with ThreadPoolExecutor(self.num_processes) as executor:
            return torch.tensor(list(executor.map(compute_score, answers)))


class Policy(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, VOCABULARY)

    def rollout(self, batch):
        state = torch.zeros(batch, self.cell.hidden_size)
        token, answers, log_probability = torch.zeros(batch, dtype=torch.long), [], 0.0
        for _ in range(LENGTH):
            state = self.cell(self.embedding(token), state)
            distribution = torch.distributions.Categorical(logits=self.head(state))
            token = distribution.sample()
            answers.append(token)
            log_probability = log_probability + distribution.log_prob(token)
        return torch.stack(answers, dim=1).tolist(), log_probability


def train(policy, optimizer, reward_manager, steps):
    for step in range(steps):
        answers, log_probability = policy.rollout(64)
        rewards = reward_manager(answers)
        loss = -((rewards - rewards.mean()) * log_probability).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: reward {rewards.mean():.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    train(policy, optimizer, RewardManager(1), WARM_UP)
    train(policy, optimizer, RewardManager(4), STEPS)


if __name__ == "__main__":
    main()
