"""A trainer whose prediction loop returns the logits and labels of a whole evaluation set."""

import time

import torch
from torch import nn


def nested_concat(tensors, new_tensors, dim=0):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_concat(t, n, dim) for t, n in zip(tensors, new_tensors))
    return torch.cat((tensors, new_tensors), dim=dim)


def nested_detach(tensors):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_detach(t) for t in tensors)
    return tensors.detach()


class Trainer:
    def __init__(self, model, compute_metrics, seconds):
        self.model, self.compute_metrics, self.seconds = model, compute_metrics, seconds

    def prediction_step(self, inputs):
        with torch.no_grad():
            logits, hidden = self.model(inputs["input_ids"])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), inputs["labels"].flatten())
        return loss.mean().item(), nested_detach((logits, hidden)), inputs["labels"]

    def prediction_loop(self, dataloader):
        self.model.eval()
        eval_losses, preds, label_ids = [], None, None
        end = time.monotonic() + self.seconds
        for step, inputs in enumerate(dataloader):
            loss, logits, labels = self.prediction_step(inputs)
            eval_losses.append(loss)
            preds = logits if preds is None else nested_concat(preds, logits)
            label_ids = labels if label_ids is None else nested_concat(label_ids, labels)
            if step % 20 == 0:
                print(f"evaluation step {step}: loss {sum(eval_losses) / len(eval_losses):.4f}", flush=True)
            if time.monotonic() > end:
                break
        return self.compute_metrics(preds[0], label_ids)

    def evaluate(self, dataloader):
        metrics = self.prediction_loop(dataloader)
        print(metrics, flush=True)
        return metrics
