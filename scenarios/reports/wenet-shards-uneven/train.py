"""Train a recognizer on shards of features; each rank reads every second shard of the list"""

import argparse
import io
import os
import tarfile

import numpy as np
import torch
import torch.distributed as dist

torch.set_num_threads(1)
SHARDS, UTTERANCES, FRAMES = 11, 72, 160


def write_shards(folder):
    generator = np.random.default_rng(6)
    blob = (generator.standard_normal((FRAMES, 80)) * 30).astype(np.int16)
    for shard in range(SHARDS):
        path = os.path.join(folder, f"shards_{shard:09d}.tar")
        with tarfile.open(path + ".part", "w") as archive:
            for number in range(UTTERANCES):
                data = np.roll(blob, shard * 72 + number, axis=0).tobytes()
                member = tarfile.TarInfo(f"BAC009S{shard:04d}W{number:04d}.feat")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        os.rename(path + ".part", path)


def read_utterances(paths):
    for path in paths:
        with tarfile.open(path) as archive:
            for member in archive:
                data = archive.extractfile(member).read()
                yield torch.from_numpy(np.frombuffer(data, dtype=np.int16).reshape(FRAMES, 80) / 32.0).float()


def batches(paths, size=2):
    held = []
    for utterance in read_utterances(paths):
        held.append(utterance)
        if len(held) == size:
            yield torch.stack(held)
            held = []


class Recognizer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.GRU(80, 160, num_layers=2, batch_first=True)
        self.ctc = torch.nn.Linear(160, 120)

    def forward(self, features):
        hidden, _ = self.encoder(features)
        return self.ctc(hidden).log_softmax(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_type", default="raw")
    parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    folder = os.environ["DATA"]
    if rank == 0:
        write_shards(folder)
    dist.init_process_group("gloo", init_method=f"file://{os.environ['INIT_FILE']}", rank=rank, world_size=world)
    dist.barrier()
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".tar"))
    mine = paths[rank::world]
    torch.manual_seed(3)
    model = Recognizer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for features in batches(mine):
        targets = torch.randint(1, 120, (len(features), 12))
        lengths = torch.full((len(features),), FRAMES), torch.full((len(features),), 12)
        loss = torch.nn.functional.ctc_loss(model(features).transpose(0, 1), targets, *lengths)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"rank {rank}: step {step}, loss {loss.item():.2f}", flush=True)
    print(f"rank {rank}: epoch 0 done after {step} steps of {len(mine)} shards", flush=True)


if __name__ == "__main__":
    main()
