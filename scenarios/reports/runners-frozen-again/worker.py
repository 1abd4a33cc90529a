"""A worker of a video generation service: a queue of tasks, and a runner that is made anew for each model class."""

import gc
import queue
import threading

import torch

TASKS = 85
STEPS = 8
CLASSES = ["t2v", "i2v", "v2v"]


class Scheduler:
    def __init__(self, runner):
        self.runner = runner
        self.latents = torch.zeros(4, 16, 96, 96)
        self.noise = torch.randn(4, 16, 96, 96)

    def step(self, number):
        self.latents += self.noise * (1 - number / STEPS) - 0.1 * self.runner.transformer(self.latents)


class Runner:
    """Scheduler and cache point back to it, as the parts of a pipeline do."""

    def __init__(self, kind):
        self.kind = kind
        self.transformer = torch.nn.Sequential(
            torch.nn.Conv2d(16, 48, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(48, 16, 3, padding=1)
        )
        self.scheduler = Scheduler(self)
        self.cache = {"runner": self, "keys": torch.zeros(1 << 18), "values": torch.zeros(1 << 18)}
        self.frozen = False

    def warm_up(self):
        """Once a runner, so that collections need not walk the model."""
        self.scheduler.step(0)
        if not self.frozen:
            gc.freeze()
            self.frozen = True

    def run(self, prompt):
        torch.manual_seed(len(prompt))
        for number in range(STEPS):
            self.scheduler.step(number)
        return self.scheduler.latents.mean().item()


class Worker(threading.Thread):
    def __init__(self, tasks, answers):
        super().__init__(name="worker")
        self.tasks, self.answers = tasks, answers
        self.runner = None

    def run(self):
        with torch.no_grad():
            while True:
                task = self.tasks.get()
                if task is None:
                    return
                kind, prompt = task
                if self.runner is None or self.runner.kind != kind:
                    self.runner = Runner(kind)
                    self.runner.warm_up()
                self.answers.put(self.runner.run(prompt))


def main():
    torch.set_num_threads(1)
    tasks, answers = queue.Queue(maxsize=2), queue.Queue()
    worker = Worker(tasks, answers)
    worker.start()
    for number in range(TASKS):
        tasks.put((CLASSES[number % len(CLASSES)], f"a prompt, number {number}"))
        if number:
            mean = answers.get()
        if number % 10 == 9:
            print(f"task {number}: {mean:.4f}, collected {gc.collect()}", flush=True)
    tasks.put(None)
    worker.join()


if __name__ == "__main__":
    main()
