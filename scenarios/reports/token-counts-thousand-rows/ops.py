"""Operators on batches of rows: a filter computes statistics, and then keeps rows by them"""

from tokenizer import Tokenizer

DEFAULT_BATCH_SIZE = 1000


class Filter:
    def compute_stats_batched(self, samples):
        raise NotImplementedError

    def process_batched(self, samples):
        raise NotImplementedError

    def run(self, samples):
        samples = self.compute_stats_batched(samples)
        keep = self.process_batched(samples)
        places = [n for n, kept in enumerate(keep) if kept]
        return {key: [values[n] for n in places] for key, values in samples.items()}


class TokenNumFilter(Filter):
    def __init__(self, min_num=10, max_num=2048):
        self.min_num, self.max_num, self.tokenizer = min_num, max_num, Tokenizer()

    def compute_stats_batched(self, samples):
        missing = [n for n, stats in enumerate(samples["stats"]) if "num_token" not in stats]
        encoded = self.tokenizer([samples["text"][n] for n in missing], add_special_tokens=False)
        for n, ids in zip(missing, encoded["input_ids"], strict=True):
            samples["stats"][n]["num_token"] = len(ids)
        return samples

    def process_batched(self, samples):
        return [self.min_num <= stats["num_token"] <= self.max_num for stats in samples["stats"]]
