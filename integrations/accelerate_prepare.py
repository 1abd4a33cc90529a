"""Does a loader that Accelerate's `prepare` has made anew train the same over the arena?

Variants: `one`, one process; `stateful`, the same over torchdata's loader; `shard`, two processes that each read
their share; `dispatch`, two processes, of which the first reads for both. Two epochs; the second is begun in its
middle, as after a checkpoint (`skip_first_batches`).
"""

import torch
from common import Record, Rows, loader_context, model, must, options


def main():
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    given = options("torch.utils.data", ("one", "stateful", "shard", "dispatch"))
    dispatch = given.variant == "dispatch"
    record = Record(given)
    accelerator = Accelerator(
        cpu=True,
        dataloader_config=DataLoaderConfiguration(
            use_stateful_dataloader=given.variant == "stateful", dispatch_batches=dispatch, use_seedable_sampler=True
        ),
    )
    # With two processes Accelerate hands over copies: it moves batches to the device "cpu:0", and dispatches what it
    # has concatenated.
    copies = given.variant in ("shard", "dispatch")
    must(accelerator.num_processes == (2 if copies else 1), "as many trainers as were asked for")
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    passed = torch.utils.data.DataLoader(
        Rows(60), batch_size=6, shuffle=True, num_workers=2, multiprocessing_context=loader_context(given)
    )
    net, optimizer, prepared = accelerator.prepare(net, optimizer, passed)
    must(prepared is not passed and prepared.base_dataloader is not passed, "prepare made the loader anew")

    def train(batches):
        if copies:
            # Look at what the loader within hands over.
            within = batches.base_dataloader
            plain = within.__iter__
            within.__iter__ = lambda: map(record.saw, plain())
        for batch in batches:
            if not copies:
                record.saw(batch)
            x, y = batch
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            record.losses.append(loss.item())

    train(prepared)
    prepared.set_epoch(1)
    train(accelerator.skip_first_batches(prepared, 2))
    if accelerator.is_main_process or not dispatch:
        record.write(accelerator.unwrap_model(net), accelerator.process_index)
    accelerator.end_training()


if __name__ == "__main__":
    main()
