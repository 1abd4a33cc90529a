"""The game: four in a row on a square board"""

import numpy as np

SIZE, ROW = 11, 4
CELLS = SIZE * SIZE
STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))


class Board:
    def __init__(self, stones=None, turn=1):
        self.stones = [0] * CELLS if stones is None else stones
        self.turn, self.winner = turn, 0

    def copy(self):
        return Board(self.stones[:], self.turn)

    def free(self):
        return [cell for cell, stone in enumerate(self.stones) if not stone]

    def play(self, cell):
        self.stones[cell] = self.turn
        row, column = divmod(cell, SIZE)
        for down, right in STEPS:
            if 1 + self.run(row, column, down, right) + self.run(row, column, -down, -right) >= ROW:
                self.winner = self.turn
        self.turn = -self.turn

    def run(self, row, column, down, right):
        count, row, column = 0, row + down, column + right
        while 0 <= row < SIZE and 0 <= column < SIZE and self.stones[row * SIZE + column] == self.turn:
            count, row, column = count + 1, row + down, column + right
        return count

    def features(self):
        stones = np.array(self.stones, np.float32) * self.turn
        return np.concatenate([stones > 0, stones < 0]).astype(np.float32)
