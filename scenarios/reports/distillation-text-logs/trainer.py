"""On-policy distillation: the student completes prompts, and learns the teacher's distribution at what it wrote."""

import collections
import time

import torch
import torch.distributed as dist
from torch import nn


def gather_object(items):
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, items)
    return [item for part in gathered for item in part]


class DistillationConfig:
    def __init__(
        self,
        max_steps,
        max_completion_length,
        num_generations,
        log_completions=False,
        log_completions_steps=100,
        logging_steps=40,
        num_completions_to_print=2,
        step_seconds=0.055,
    ):
        self.max_steps, self.max_completion_length = max_steps, max_completion_length
        self.num_generations = num_generations
        self.log_completions, self.log_completions_steps = log_completions, log_completions_steps
        self.logging_steps, self.num_completions_to_print = logging_steps, num_completions_to_print
        self.step_seconds = step_seconds


class DistillationTrainer:
    def __init__(self, student, teacher, tokenizer, prompts, args):
        self.student, self.teacher, self.tokenizer, self.prompts, self.args = student, teacher, tokenizer, prompts, args
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
        self.global_step = 0
        self._metrics = {"train": collections.defaultdict(list)}
        self._textual_logs = {"prompt": [], "completion": []}

    @torch.no_grad()
    def _generate(self, prompts):
        """Samples all positions of the completions from the state after the prompt."""
        ids = torch.tensor([self.tokenizer.encode(prompt) for prompt in prompts])
        probabilities = self.student(ids).softmax(-1)
        return ids, torch.multinomial(probabilities, self.args.max_completion_length, replacement=True)

    def _generate_and_score_completions(self, prompts):
        ids, completion_ids = self._generate(prompts)
        completions_text = self.tokenizer.batch_decode(completion_ids)
        self._textual_logs["prompt"].extend(gather_object(prompts))
        self._textual_logs["completion"].extend(gather_object(completions_text))
        self._metrics["train"]["completions/mean_length"].append(sum(map(len, completions_text)) / len(completions_text))
        return ids, completion_ids

    def compute_loss(self, ids, completion_ids):
        start = int(torch.randint(completion_ids.shape[1] - ids.shape[1], ()))
        window = completion_ids[:, start : start + ids.shape[1]]
        with torch.no_grad():
            target = self.teacher(window).log_softmax(-1)
        return nn.functional.kl_div(self.student(window).log_softmax(-1), target, log_target=True, reduction="batchmean")

    def training_step(self, prompts):
        end = time.monotonic() + self.args.step_seconds
        ids, completion_ids = self._generate_and_score_completions(prompts)
        self.optimizer.zero_grad()
        while True:
            loss = self.compute_loss(ids, completion_ids)
            loss.backward()
            if time.monotonic() > end:
                break
        for parameter in self.student.parameters():
            dist.all_reduce(parameter.grad)
        nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        self.optimizer.step()
        self._metrics["train"]["loss"].append(loss.item())

    def log(self):
        metrics = {name: sum(values) / len(values) for name, values in self._metrics["train"].items()}
        if dist.get_rank() == 0:
            print(self.global_step, {name: round(value, 4) for name, value in metrics.items()}, flush=True)
        self._metrics["train"].clear()
        should_log_completions = self.args.log_completions and self.global_step % self.args.log_completions_steps == 0
        if should_log_completions and dist.get_rank() == 0:
            for number in range(-self.args.num_completions_to_print, 0):
                print(self._textual_logs["prompt"][number], "->", self._textual_logs["completion"][number][:80], flush=True)
        if should_log_completions:
            self._textual_logs["prompt"].clear()
            self._textual_logs["completion"].clear()

    def train(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        for step in range(self.args.max_steps):
            first = (step * world + rank) * self.args.num_generations
            prompts = [self.prompts[(first + offset) % len(self.prompts)] for offset in range(self.args.num_generations)]
            self.training_step(prompts)
            self.global_step += 1
            if self.global_step % self.args.logging_steps == 0:
                self.log()
