"""Two ranks evaluate; one document breaks one rank, which logs it, leaves its group and exits; the other waits."""

import os
import sys
import traceback

import torch
import torch.distributed as dist

DOCUMENTS = 640


class Task:
    """Questions with a reference answer; one of them was written without its options."""

    def __init__(self):
        self.docs = [{"doc_id": n, "question": n * 7919 % 512, "options": "A B C D".split()} for n in range(DOCUMENTS)]
        self.docs[541]["options"] = []

    def process_results(self, doc, logits):
        scores = logits[: len(doc["options"])]
        if len(scores) == 0:
            raise ValueError(f"doc {doc['doc_id']} has no options to choose from")
        return {"acc": float(scores.argmax() == doc["question"] % 4)}


class Model(torch.nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.embedding = torch.nn.Embedding(512, width)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 1024, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 512)

    def generate(self, question, tokens=10):
        ids = torch.full((1, 1), question)
        for _ in range(tokens):
            logits = self.head(self.body(self.embedding(ids))[:, -1])
            ids = torch.cat([ids, logits.argmax(1, keepdim=True)], dim=1)
        return logits[0]


def evaluate(model, task, rank, world_size):
    resps = []
    for doc in task.docs[rank::world_size]:
        with torch.inference_mode():
            resps.append(task.process_results(doc, model.generate(doc["question"])))
        if len(resps) % 50 == 0:
            print(f"[rank {rank}] {len(resps)} documents", flush=True)
    gathered = [None] * world_size if rank == 0 else None
    dist.gather_object(resps, gathered, dst=0)
    if rank == 0:
        results = [resp["acc"] for part in gathered for resp in part]
        return sum(results) / len(results)


def cli_evaluate():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    results_list = []
    try:
        results_list.append(evaluate(Model().eval(), Task(), rank, world_size))
    except Exception as e:
        traceback.print_exc()
        print(f"Error during evaluation: {e}", file=sys.stderr)
        results_list.append(None)
        dist.destroy_process_group()
        sys.exit(1)
    print(results_list)
    dist.destroy_process_group()


if __name__ == "__main__":
    cli_evaluate()
