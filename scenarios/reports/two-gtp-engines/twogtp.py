"""A referee: lets two engines play against each other, and keeps the score."""

import os
import subprocess
import sys

GAMES = 2
MOVES = 11


class Engine:
    def __init__(self, seed):
        command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine.py"), str(seed)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().removeprefix("= ").strip()


def main():
    engines = [Engine(1), Engine(2)]
    for game in range(GAMES):
        for engine in engines:
            engine.ask("clear_board")
        for number in range(MOVES):
            mover, other = engines[number % 2], engines[1 - number % 2]
            move = mover.ask("genmove")
            other.ask(f"play {move}")
        print(f"game {game}: {engines[0].ask('final_score')}", flush=True)
    for engine in engines:
        engine.ask("quit")
        engine.process.wait()


if __name__ == "__main__":
    main()
