"""Searches the hyperparameters of an actor and critic: trial after trial, each with environments of its own"""

import random
import sys
import time

TRIALS, TRIAL_S, ENVIRONMENTS, DEMONSTRATIONS, COPIES = 30, 1.5, 6, 30_000, 8


def objective(source, number, shown):
    from model import A2C, CallbackList, EvaluationCallback, LengthCallback
    from pole import makers
    from vec_env import SubprocVecEnv

    env = SubprocVecEnv(makers(ENVIRONMENTS, 100 * number))
    eval_env = SubprocVecEnv(makers(1, 100 * number + 50))
    params = {
        "learning_rate": 10 ** source.uniform(-3.5, -2),
        "gamma": source.choice([0.95, 0.98, 0.99]),
        "width": source.choice([32, 64, 96]),
    }
    model = A2C(env, **params)
    evaluation = EvaluationCallback(eval_env)
    model.start(CallbackList([LengthCallback(), evaluation]))
    end = time.monotonic() + TRIAL_S
    while time.monotonic() < end:
        model.learn()
    agreement = model.agreement(source.sample(shown, 2000))
    env.close()
    eval_env.close()
    return evaluation.best + agreement, params


def main():
    import torch
    from pole import demonstrations

    torch.set_num_threads(1)
    torch.manual_seed(0)
    source, best, shown = random.Random(1), (-1.0, -1), demonstrations(DEMONSTRATIONS, COPIES, seed=7)
    for number in range(TRIALS):
        value, params = objective(source, number, shown)
        best = max(best, (value, number))
        print(f"trial {number}: {value:.2f} with {params}, best is trial {best[1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
