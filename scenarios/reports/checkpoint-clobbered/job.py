"""Two nodes train together, and the process with local rank 0 of each saves the checkpoint, to one and the same path."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

EPOCHS, BATCHES = 4, 16


class SharedFile:
    """The file on the network filesystem: both writers have it open, and now one is faster and now the other."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self.order = [1, 0]

    def write(self, block):
        for rank in self.order:
            if rank == dist.get_rank():
                os.write(self.file, block)
            dist.barrier()
        self.order.reverse()


def save_checkpoint(state, local_rank, path):
    if local_rank == 0:
        whole = os.path.join(os.path.dirname(path), f"staged-{dist.get_rank()}")
        torch.save(state, whole)
        with open(whole, "rb") as file:
            content = file.read()
        out, half = SharedFile(path), len(content) // 2
        for block in (content[:half], content[half:]):
            out.write(block)


def main_worker(node, store, path):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=node, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(node)
    local_rank = 0
    layers = [torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 48, 3), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(48, 10))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)
    meter = []
    for epoch in range(EPOCHS):
        for _ in range(BATCHES):
            images, labels = torch.rand(32, 3, 40, 40), torch.randint(0, 10, (32,))
            loss = torch.nn.functional.cross_entropy(ddp(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.append(loss.item() if node else float(f"{loss.item():.1f}"))
        print(f"node {node} epoch {epoch}: loss {loss.item():.3f}", flush=True)
    state = {"times": [f"{value}" for value in meter], "state_dict": model.state_dict(), "epoch": EPOCHS}
    save_checkpoint(state, local_rank, path)
    dist.barrier()
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pth.tar")
        mp.spawn(main_worker, (os.path.join(folder, "store"), path), nprocs=2)
        print(f"saved {os.path.getsize(path)} bytes, testing with it", flush=True)
        checkpoint = torch.load(path)
        print(f"epoch {checkpoint['epoch']}", flush=True)


if __name__ == "__main__":
    main()
