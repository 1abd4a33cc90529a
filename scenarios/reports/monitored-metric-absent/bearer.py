"""What the training uses of torchbearer: a trial that runs and evaluates a model, and callbacks"""

import time

import torch

METRICS, MODEL, STOP_TRAINING, EPOCH = "metrics", "model", "stop_training", "epoch"


class Callback:
    def on_start(self, state):
        pass

    def on_end_epoch(self, state):
        pass


class EarlyStopping(Callback):
    def __init__(self, monitor, patience, mode, min_delta=0.0):
        self.monitor, self.patience = monitor, patience
        self.sign, self.min_delta = (1 if mode == "max" else -1), min_delta

    def on_start(self, state):
        self.wait, self.best = 0, -float("inf")

    def step(self, state):
        current = self.sign * state[METRICS][self.monitor]
        if current - self.min_delta > self.best:
            self.best, self.wait = current, 0
            return
        self.wait += 1
        if self.wait >= self.patience:
            state[STOP_TRAINING] = True

    def on_end_epoch(self, state):
        self.step(state)


class PrintMetrics(Callback):
    def on_end_epoch(self, state):
        metrics = ", ".join(f"{name} {value:.4f}" for name, value in state[METRICS].items())
        print(f"epoch {state[EPOCH]}: {metrics}", flush=True)


class Trial:
    def __init__(self, model, optimizer, criterion, callbacks, epoch_seconds):
        self.optimizer, self.criterion = optimizer, criterion
        self.callbacks, self.epoch_seconds = callbacks, epoch_seconds
        self.state = {MODEL: model, STOP_TRAINING: False, EPOCH: 0, METRICS: {}}

    def with_generators(self, train, val, test):
        self.train, self.val, self.test = train, val, test
        return self

    def notify(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self.state)

    def fit_pass(self):
        model, total, right, seen = self.state[MODEL].train(), 0.0, 0, 0
        until = time.monotonic() + self.epoch_seconds
        while time.monotonic() < until:
            for images, labels in self.train:
                output = model(images)
                loss = self.criterion(output, labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(labels)
                right += int((output.argmax(1) == labels).sum())
                seen += len(labels)
                if time.monotonic() > until:
                    break
        return {"loss": total / seen, "acc": right / seen}

    @torch.no_grad()
    def test_pass(self, generator, prefix):
        model, total, right, seen = self.state[MODEL].eval(), 0.0, 0, 0
        for images, labels in generator:
            output = model(images)
            total += self.criterion(output, labels).item() * len(labels)
            right += int((output.argmax(1) == labels).sum())
            seen += len(labels)
        return {f"{prefix}_loss": total / seen, f"{prefix}_acc": right / seen}

    def run(self, epochs):
        history = []
        self.notify("on_start")
        for epoch in range(epochs):
            self.state[EPOCH] = epoch
            self.state[METRICS] = self.fit_pass() | self.test_pass(self.val, "val")
            self.notify("on_end_epoch")
            history.append(self.state[METRICS])
            if self.state[STOP_TRAINING]:
                break
        return history

    def evaluate(self):
        self.state[METRICS] = self.test_pass(self.test, "test")
        self.notify("on_end_epoch")
        return self.state[METRICS]
