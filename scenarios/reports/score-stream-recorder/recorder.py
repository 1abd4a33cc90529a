"""Logs of evaluations: archives that hold a member for each sample"""

import dataclasses
import json
import zipfile


@dataclasses.dataclass
class EvalSample:
    id: int
    messages: list
    events: list
    scores: dict = dataclasses.field(default_factory=dict)


def write_sample(archive, sample):
    archive.writestr(f"samples/{sample.id}.json", json.dumps(vars(sample)))


class EvalReader:
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)

    def sample_ids(self):
        return sorted(int(name[8:-5]) for name in self.archive.namelist() if name.startswith("samples/"))

    def read_sample(self, number):
        return EvalSample(**json.loads(self.archive.read(f"samples/{number}.json")))


class EvalRecorder:
    """Takes the samples of a log, and writes them when it is flushed"""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.samples, self.summaries = [], []

    async def log_sample(self, sample):
        self.samples.append(sample)
        self.summaries.append({"id": sample.id, "scores": sample.scores})

    async def flush(self):
        for sample in self.samples:
            write_sample(self.archive, sample)
        self.samples.clear()

    async def log_finish(self, results):
        await self.flush()
        self.archive.writestr("summaries.json", json.dumps(self.summaries))
        self.archive.writestr("header.json", json.dumps({"results": results}))
        self.archive.close()
