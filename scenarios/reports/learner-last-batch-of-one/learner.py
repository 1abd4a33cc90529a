"""A learner with callbacks"""

import torch
from torch import nn


class Callback:
    def on_batch_begin(self, learner):
        pass

    def on_batch_end(self, learner):
        pass


class Recorder(Callback):
    def __init__(self, every):
        self.every, self.losses = every, []

    def on_batch_end(self, learner):
        self.losses.append(learner.loss)
        if learner.iteration % self.every == 0:
            recent = self.losses[-self.every :]
            print(f"iteration {learner.iteration}: loss {sum(recent) / len(recent):.4f}", flush=True)


class Learner:
    def __init__(self, model, train, valid, callbacks):
        self.model, self.train, self.valid, self.callbacks = model, train, valid, callbacks
        self.optimizer = torch.optim.Adam(model.parameters(), betas=(0.95, 0.99))
        self.iteration, self.loss = 0, 0.0

    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for images, labels in self.train:
                self.call("on_batch_begin")
                loss = nn.functional.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.iteration += 1
                self.loss = loss.item()
                self.call("on_batch_end")
            print(f"epoch {epoch}: accuracy {self.validate():.3f}", flush=True)

    def validate(self):
        self.model.eval()
        hits = count = 0
        with torch.no_grad():
            for images, labels in self.valid:
                hits += int((self.model(images).argmax(1) == labels).sum())
                count += len(labels)
        return hits / count
