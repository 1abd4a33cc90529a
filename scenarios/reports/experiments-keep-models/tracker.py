"""What the program uses of an experiment tracker"""

import queue
import threading
import uuid

import torch


class Streamer(threading.Thread):
    """Sends the messages of an experiment"""

    def __init__(self):
        super().__init__(daemon=True)
        self.messages = queue.Queue(maxsize=1000)
        self.sent = 0

    def run(self):
        while (message := self.messages.get()) is not None:
            self.sent += len(str(message))


class Experiment:
    running = {}

    def __init__(self, project):
        self.id = uuid.uuid4().hex
        self.project = project
        self.alive = True
        self._storage = {"torch": {"model": None}, "parameters": {}}
        self.streamer = Streamer()
        self.streamer.start()
        Experiment.running[self.id] = self

    def log_parameters(self, parameters):
        self._storage["parameters"].update(parameters)
        self.streamer.messages.put(parameters)

    def log_metric(self, name, value, step):
        if self.alive:
            self.streamer.messages.put((name, value, step))

    def set_model_graph(self, module):
        self._storage["torch"]["model"] = module
        self.streamer.messages.put(str(module))

    def end(self):
        self.streamer.messages.put(None)
        self.streamer.join()
        self.alive = False


def patch():
    """The first forward pass of a module tells the experiment of it, as the automatic logging does"""
    original = torch.nn.Sequential.__call__

    def call(module, *arguments):
        for experiment in Experiment.running.values():
            if experiment.alive and experiment._storage["torch"]["model"] is None:
                experiment.set_model_graph(module)
        return original(module, *arguments)

    torch.nn.Sequential.__call__ = call
