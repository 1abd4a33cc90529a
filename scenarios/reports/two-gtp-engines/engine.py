"""An engine that speaks the Go text protocol: tree search with random playouts, and the tree is used again."""

import math
import random
import sys

BOARD = 13 * 13
ROLLOUTS = 9000


class Node:
    __slots__ = ("children", "parent", "prior", "value", "visits")

    def __init__(self, parent, prior):
        self.parent, self.prior = parent, prior
        self.children = {}
        self.visits, self.value = 0, 0.0


class MCTS:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.clear()

    def clear(self):
        self.root = Node(None, 1.0)
        self.taken = set()

    def select(self, node):
        scale = math.sqrt(node.visits + 1)

        def score(item):
            child = item[1]
            return (child.value / child.visits if child.visits else 0) + 1.5 * child.prior * scale / (1 + child.visits)

        return max(node.children.items(), key=score)

    def rollout(self):
        node, taken = self.root, set(self.taken)
        while node.children:
            move, node = self.select(node)
            taken.add(move)
        free = [move for move in range(BOARD) if move not in taken][:70]
        for move in free:
            node.children[move] = Node(node, self.random.random() / len(free))
        result = sum(self.random.choices((-1, 1), k=9)) / 9
        while node is not None:
            node.visits += 1
            node.value += result
            result = -result
            node = node.parent

    def generate(self):
        for _ in range(ROLLOUTS):
            self.rollout()
        move = max(self.root.children, key=lambda move: self.root.children[move].visits)
        self.advance(move)
        return move

    def advance(self, move):
        self.taken.add(move)
        self.root = self.root.children.get(move) or Node(None, 1.0)
        self.root.parent = None


def main():
    search = MCTS(int(sys.argv[1]))
    for line in sys.stdin:
        command, *words = line.split()
        answer = ""
        if command == "clear_board":
            search.clear()
        elif command == "genmove":
            answer = search.generate()
        elif command == "play":
            search.advance(int(words[0]))
        elif command == "final_score":
            answer = f"B+{search.root.value / max(1, search.root.visits):.2f}"
        print(f"= {answer}", flush=True)
        if command == "quit":
            break


if __name__ == "__main__":
    main()
