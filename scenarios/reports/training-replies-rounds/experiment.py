"""An experiment of a researcher: rounds of training on the nodes that were found for it"""

import numpy as np


class FedAverage:
    def aggregate(self, replies):
        total = sum(reply["sample_size"] for reply in replies.values())
        parameters = {}
        for reply in replies.values():
            weight = np.float32(reply["sample_size"] / total)
            for name, value in reply["params"].items():
                parameters[name] = parameters.get(name, 0) + weight * value
        return parameters


class Experiment:
    def __init__(self, nodes, parameters):
        self.nodes = nodes
        self.aggregator = FedAverage()
        self.parameters = parameters
        self.round_current = 0
        self._training_replies = {}
        self._aggregated_params = {}

    def training_replies(self):
        return self._training_replies

    def aggregated_params(self):
        return self._aggregated_params

    def run_once(self):
        """One round: all nodes train from the current parameters, and their replies are averaged"""
        for channel in self.nodes.values():
            channel.send({"command": "train", "round": self.round_current, "params": self.parameters})
        replies = {name: channel.receive() for name, channel in self.nodes.items()}
        self.parameters = self.aggregator.aggregate(replies)
        self._training_replies[self.round_current] = replies
        self._aggregated_params[self.round_current] = {"params": self.parameters}
        self.round_current += 1
        return sum(reply["loss"] for reply in replies.values()) / len(replies)

    def info(self):
        return {
            number: {name: (reply["sample_size"], reply["loss"]) for name, reply in replies.items()}
            for number, replies in self._training_replies.items()
        }
