"""Learns a game on a board of 49 by 49 by self-play"""

import time

import torch
from torch import nn

from mcts import MCTS

torch.set_num_threads(1)
SIDE, PREDICT_S, SIMULATIONS, MOVES = 49, 0.026, 1500, 40


class Game:
    """Both sides move a piece over the board; a side that comes to the last field wins"""

    actions = range(SIDE * SIDE)

    def start(self):
        return (0, 0)

    def next_state(self, board, action):
        return ((board[0] + 1 + action % 3), board[1] * 31 % 9973 + action)

    def ended(self, board):
        return 1.0 if board[0] > 1_000_000 else 0.0

    def string(self, board):
        return f"{board[0]}/{board[1]}"

    def candidates(self, policy):
        return sorted(self.actions, key=policy.__getitem__)[-4:][::-1]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU()
        )
        self.policy, self.value = nn.Conv2d(12, 1, 1), nn.Linear(12, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    @torch.no_grad()
    def predict(self, board):
        until = time.monotonic() + PREDICT_S
        planes = torch.zeros((1, 2, SIDE, SIDE))
        planes[0, 0, board[0] % SIDE], planes[0, 1, :, board[1] % SIDE] = 1.0, 1.0
        total, rounds = torch.zeros(SIDE * SIDE), 0
        while rounds == 0 or time.monotonic() < until:
            hidden = self.body(torch.rot90(planes, rounds % 4, (2, 3)))
            total += torch.rot90(self.policy(hidden), -rounds % 4, (2, 3)).flatten()
            rounds += 1
        logits = torch.arange(SIDE * SIDE, dtype=torch.float32).flip(0) * 20.0 + total / rounds
        value = self.value(hidden.mean(dim=(2, 3))).tanh().item()
        return logits.softmax(0).tolist(), value


def main():
    torch.manual_seed(0)
    game = Game()
    search, board = MCTS(game, Network(), 1.0), game.start()
    for move in range(MOVES):
        counts = search.counts(board, SIMULATIONS)
        action = max(counts, key=counts.get)
        print(f"move {move}: {action}, {len(search.Ps)} positions", flush=True)
        board = game.next_state(board, action)


if __name__ == "__main__":
    main()
