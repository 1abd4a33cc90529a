"""How many environments at once are worth it? Trains an agent for a while with each number of them"""

import functools
import time

import trading_env
from subproc_vec_env import SubprocVecEnv

NUMBERS, SECONDS = (1, 2, 4, 10), 6.0


def main():
    from a2c import A2C

    table = trading_env.read_table(rows=800_000)
    size = sum(column.nbytes for column in table.values())
    print(f"{len(table)} columns, {size / 2**20:.0f} MiB", flush=True)
    for number in NUMBERS:
        env = SubprocVecEnv([functools.partial(trading_env.TradingEnv, table, seed) for seed in range(number)])
        model = A2C(env, trading_env.OBSERVATION, trading_env.ACTIONS)
        end, steps = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            steps += model.learn_once()
        env.close()
        print(f"{number} environments: {steps / SECONDS:.0f} steps a second", flush=True)


if __name__ == "__main__":
    main()
