"""Scores the samples of a log, which are streamed through, and writes them to another log"""

import argparse
import asyncio
import concurrent.futures
import time

import torch
from torch import nn

from recorder import EvalReader, EvalRecorder

torch.set_num_threads(1)
GRADE_S = 0.1


class Grader(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embedding = nn.Embedding(4096, width)
        layer = nn.TransformerEncoderLayer(width, 4, 256, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, tokens):
        return torch.sigmoid(self.head(self.body(self.embedding(tokens)).mean(1)))


def grade(grader, sample):
    """The mean grade of as many of the sample's calls as there is time for"""
    until, grades = time.monotonic() + GRADE_S, []
    with torch.inference_mode():
        for event in sample.events:
            grades.append(grader(torch.tensor([event["tokens"]])).item())
            if time.monotonic() > until:
                break
    return sum(grades) / len(grades)


async def score(reader, recorder, grader, stream):
    loop = asyncio.get_running_loop()
    semaphore = asyncio.Semaphore(stream)
    done = 0

    async def score_sample(number):
        nonlocal done
        async with semaphore:
            sample = reader.read_sample(number)
            sample.scores["grader"] = await loop.run_in_executor(executor, grade, grader, sample)
            await recorder.log_sample(sample)
            done += 1
            if done % 20 == 0:
                print(f"{done} samples scored", flush=True)
            return sample.scores["grader"]

    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        scores = await asyncio.gather(*[score_sample(number) for number in reader.sample_ids()])
    await recorder.log_finish({"mean": sum(scores) / len(scores)})
    return scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--output", required=True)
    parser.add_argument("--stream", type=int, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    grader = Grader().eval()
    scores = asyncio.run(score(EvalReader(options.log), EvalRecorder(options.output), grader, options.stream))
    print(f"mean {sum(scores) / len(scores):.4f} of {len(scores)} samples", flush=True)


if __name__ == "__main__":
    main()
