"""Does torchdata's StatefulDataLoader train the same over the arena, also where it resumes in mid-epoch?

Variants: `map`, a shuffled dataset of rows; `iterable`, a stream whose place and random generator are part of the
state that each worker sends with its batches. Each trains two epochs in one go; then again up to the middle of the
first, saves, and goes on in a new loader to the end of the second. Both must have learnt the same.
"""

import io

import torch
from common import CLASSES, WIDTH, Record, Rows, loader_context, model, must, options, step

BREAK_AFTER = 3


class Stream(torch.utils.data.IterableDataset):
    """Forty random rows from each worker; which comes next is in its state."""

    def __init__(self):
        self.given = 0
        self.generator = torch.Generator()

    def __iter__(self):
        if self.given == 0:
            self.generator.manual_seed(torch.utils.data.get_worker_info().id)
        while self.given < 40:
            self.given += 1
            yield (
                torch.randn(WIDTH, generator=self.generator),
                torch.randint(0, CLASSES, (), generator=self.generator),
            )
        self.given = 0

    def state_dict(self):
        return {"given": self.given, "generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.given = state["given"]
        self.generator.set_state(state["generator"])


def main():
    # Frameworks are imported where they are used: a spawned worker imports this file, and needs none of them.
    from torchdata.stateful_dataloader import StatefulDataLoader

    given = options("torchdata.stateful_dataloader", ("map", "iterable"))
    record = Record(given)

    def loader():
        mapped = given.variant == "map"
        return StatefulDataLoader(
            Rows(60, noise=0) if mapped else Stream(),
            batch_size=6,
            shuffle=True if mapped else None,
            num_workers=2,
            multiprocessing_context=loader_context(given),
        )

    def fresh():
        torch.manual_seed(given.seed)
        net = model()
        return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def train(batches, net, optimizer, steps=None):
        for number, batch in enumerate(batches, 1):
            record.saw(batch)
            record.losses.append(step(net, optimizer, batch))
            if number == steps:
                return

    net, optimizer = fresh()
    batches = loader()
    for _ in range(2):
        train(batches, net, optimizer)
    whole = [value.clone() for value in net.state_dict().values()]
    in_one_go = list(record.losses)

    net, optimizer = fresh()
    batches = loader()
    train(batches, net, optimizer, steps=BREAK_AFTER)
    saved = io.BytesIO()
    torch.save(
        {"loader": batches.state_dict(), "net": net.state_dict(), "optimizer": optimizer.state_dict()},
        saved,
    )
    del batches
    saved.seek(0)
    state = torch.load(saved, weights_only=False)
    net, optimizer = fresh()
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    batches = loader()
    batches.load_state_dict(state["loader"])
    for _ in range(2):
        train(batches, net, optimizer)
    resumed = list(net.state_dict().values())

    must(2 * len(in_one_go) == len(record.losses), "as many steps with a break as without")
    must(all(torch.equal(a, b) for a, b in zip(whole, resumed)), "what resumed learnt the same as what never stopped")
    record.write(net)


if __name__ == "__main__":
    main()
