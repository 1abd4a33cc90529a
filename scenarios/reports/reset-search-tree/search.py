"""Monte Carlo tree search with a policy and value network; the tree goes on from the move that was played"""

import math

import numpy as np
from board import CELLS, Board

EXPLORE, OPENING = 5.0, 12


class Node:
    __slots__ = ("prior", "visits", "value", "children")

    def __init__(self, prior):
        self.prior, self.visits, self.value, self.children = prior, 0, 0.0, None

    def select(self):
        scale = EXPLORE * math.sqrt(self.visits)
        best, chosen = -math.inf, None
        for cell, child in self.children.items():
            score = scale * child.prior / (1 + child.visits)
            if child.visits:
                score += child.value / child.visits
            if score > best:
                best, chosen = score, (cell, child)
        return chosen


class Search:
    def __init__(self, network, playouts):
        self.network, self.playouts = network, playouts
        self.root = Node(1.0)

    def playout(self, board):
        node, path = self.root, [self.root]
        while node.children and not board.winner:
            cell, node = node.select()
            board.play(cell)
            path.append(node)
        if board.winner:
            value = 1.0
        elif not (free := board.free()):
            value = 0.0
        else:
            policy, value = self.network(board.features())
            priors = policy[free]
            node.children = dict(zip(free, map(Node, (priors / priors.sum()).tolist())))
            value = -value
        for node in reversed(path):
            node.visits += 1
            node.value += value
            value = -value

    def move(self, board, source):
        for _ in range(self.playouts):
            self.playout(board.copy())
        cells = list(self.root.children)
        visits = np.array([child.visits for child in self.root.children.values()], float)
        shares = np.zeros(CELLS, np.float32)
        shares[cells] = visits / visits.sum()
        noisy = 0.75 * visits / visits.sum() + 0.25 * source.dirichlet([0.3] * len(cells))
        return cells[source.choice(len(cells), p=noisy / noisy.sum())], shares

    def update_with_move(self, cell):
        """Goes on with the part of the tree below the move; -1: with a new tree"""
        self.root = Node(1.0) if cell < 0 else self.root.children[cell]


def opening(source):
    """A board with some stones that nobody has won by"""
    while True:
        board = Board()
        for cell in source.choice(CELLS, OPENING, replace=False).tolist():
            board.play(cell)
        if not board.winner:
            return board


def self_play(search, source, until):
    """One game; none where the time is over before its end"""
    board, states, shares, turns = opening(source), [], [], []
    while not board.winner and board.free():
        if until():
            return None
        cell, share = search.move(board, source)
        states.append(board.features())
        shares.append(share)
        turns.append(board.turn)
        board.play(cell)
        search.update_with_move(cell)
    search.update_with_move(-1)
    results = [float(board.winner * turn) for turn in turns]
    return np.array(states), np.array(shares), np.array(results, np.float32)
