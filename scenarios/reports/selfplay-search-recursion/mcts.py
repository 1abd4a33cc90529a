"""The tree search, with its statistics by position"""

import math

EPSILON = 1e-8


class MCTS:
    def __init__(self, game, network, cpuct):
        self.game, self.network, self.cpuct = game, network, cpuct
        self.Qsa, self.Nsa, self.Ns, self.Ps = {}, {}, {}, {}

    def counts(self, board, simulations):
        for _ in range(simulations):
            self.search(board)
        s = self.game.string(board)
        return {a: self.Nsa.get((s, a), 0) for a in self.game.actions}

    def search(self, board):
        value = self.game.ended(board)
        if value:
            return -value
        s = self.game.string(board)
        if s not in self.Ps:
            policy, v = self.network.predict(board)
            self.Ps[s] = {a: policy[a] for a in self.game.candidates(policy)}
            self.Ns[s] = 0
            return -v
        best, chosen = -math.inf, None
        for a in self.Ps[s]:
            if (s, a) in self.Qsa:
                u = self.Qsa[s, a] + self.cpuct * self.Ps[s][a] * math.sqrt(self.Ns[s]) / (1 + self.Nsa[s, a])
            else:
                u = self.cpuct * self.Ps[s][a] * math.sqrt(self.Ns[s] + EPSILON)
            if u > best:
                best, chosen = u, a
        v = self.search(self.game.next_state(board, chosen))
        if (s, chosen) in self.Qsa:
            n = self.Nsa[s, chosen]
            self.Qsa[s, chosen] = (n * self.Qsa[s, chosen] + v) / (n + 1)
            self.Nsa[s, chosen] = n + 1
        else:
            self.Qsa[s, chosen], self.Nsa[s, chosen] = v, 1
        self.Ns[s] += 1
        return -v
