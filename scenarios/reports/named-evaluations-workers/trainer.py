"""A trainer of sentence encoders with named evaluation datasets, and the accelerator below it."""

import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler


class Accelerator:
    """Prepares what takes part in the training, and remembers it for the checkpoints."""

    def __init__(self):
        self._dataloaders = []
        self._models = []

    def prepare(self, item):
        (self._dataloaders if isinstance(item, DataLoader) else self._models).append(item)
        return item


class TrainingArguments:
    def __init__(self, batch_size, dataloader_num_workers, dataloader_persistent_workers, seconds, evaluations):
        self.batch_size = batch_size
        self.dataloader_num_workers = dataloader_num_workers
        self.dataloader_persistent_workers = dataloader_persistent_workers
        self.seconds, self.evaluations = seconds, evaluations


class SentenceTransformerTrainer:
    def __init__(self, model, args, train_dataset, eval_dataset, collate):
        self.args, self.collate = args, collate
        self.accelerator = Accelerator()
        self.model = self.accelerator.prepare(model)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset

    def get_batch_sampler(self, dataset, shuffle):
        sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        return BatchSampler(sampler, self.args.batch_size, drop_last=shuffle)

    def _loader(self, dataset, shuffle):
        loader = DataLoader(
            dataset,
            batch_sampler=self.get_batch_sampler(dataset, shuffle),
            collate_fn=self.collate,
            num_workers=self.args.dataloader_num_workers,
            persistent_workers=self.args.dataloader_persistent_workers,
        )
        return self.accelerator.prepare(loader)

    def get_train_dataloader(self):
        return self._loader(self.train_dataset, shuffle=True)

    def get_eval_dataloader(self, eval_dataset):
        return self._loader(eval_dataset, shuffle=False)

    def compute_loss(self, batch):
        anchors, positives = self.model(batch["anchor"]), self.model(batch["positive"])
        scores = 20 * anchors @ positives.T
        return nn.functional.cross_entropy(scores, torch.arange(len(scores)))

    def training_step(self, batch):
        loss = self.compute_loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        metrics = {}
        for name, dataset in self.eval_dataset.items():
            losses = [self.compute_loss(batch).item() for batch in self.get_eval_dataloader(dataset)]
            metrics[f"eval_{name}_loss"] = sum(losses) / len(losses)
        return metrics

    def train(self):
        loader = self.get_train_dataloader()
        step = evaluations = 0
        following = time.monotonic() + self.args.seconds
        while True:
            for batch in loader:
                loss = self.training_step(batch)
                step += 1
                if time.monotonic() > following:
                    print(f"step {step} loss {loss:.4f} {self.evaluate()}", flush=True)
                    evaluations += 1
                    if evaluations == self.args.evaluations:
                        return
                    following = time.monotonic() + self.args.seconds
