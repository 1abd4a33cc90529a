"""A trainer whose evaluation loop hands all predictions to compute_metrics()"""

import numpy as np
import torch


def nested_map(function, tensors):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_map(function, part) for part in tensors)
    return function(tensors)


def nested_concat(tensors, new_tensors):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_concat(t, n) for t, n in zip(tensors, new_tensors))
    if isinstance(tensors, torch.Tensor):
        return torch.cat((tensors, new_tensors), dim=0)
    return np.concatenate((tensors, new_tensors), axis=0)


def nested_numpify(tensors):
    return nested_map(lambda tensor: tensor.cpu().numpy(), tensors)


class Trainer:
    def __init__(self, model, compute_metrics, eval_accumulation_steps, preprocess_logits_for_metrics=None):
        self.model, self.compute_metrics = model, compute_metrics
        self.eval_accumulation_steps = eval_accumulation_steps
        self.preprocess_logits_for_metrics = preprocess_logits_for_metrics
        self.optimizer = torch.optim.AdamW(model.parameters(), 3e-5)

    def train(self, batches):
        self.model.train()
        for step, (ids, labels) in enumerate(batches, 1):
            loss, _ = self.model(ids.cuda(), labels.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 20 == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)

    @torch.no_grad()
    def evaluation_loop(self, batches):
        self.model.eval()
        losses, preds_host, labels_host = [], None, None
        all_preds, all_labels = None, None
        for step, (ids, labels) in enumerate(batches, 1):
            labels = labels.cuda()
            loss, outputs = self.model(ids.cuda(), labels)
            if self.preprocess_logits_for_metrics is not None:
                outputs = self.preprocess_logits_for_metrics(outputs, labels)
            losses.append(loss.item())
            preds_host = outputs if preds_host is None else nested_concat(preds_host, outputs)
            labels_host = labels if labels_host is None else nested_concat(labels_host, labels)
            if step % self.eval_accumulation_steps == 0:
                predictions, targets = nested_numpify(preds_host), nested_numpify(labels_host)
                all_preds = predictions if all_preds is None else nested_concat(all_preds, predictions)
                all_labels = targets if all_labels is None else nested_concat(all_labels, targets)
                preds_host, labels_host = None, None
                print(f"evaluation step {step}: loss {np.mean(losses):.4f}", flush=True)
        return self.compute_metrics(all_preds, all_labels)
