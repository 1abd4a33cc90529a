"""Does Lightning's Trainer.fit, and the loaders that it makes anew with samplers of its own, train the same?

Variants: `one`, one process, loaders used as they were given; `ddp`, two processes (Lightning starts the second by
running this file again), where it makes each loader anew with a DistributedSampler: the one for training from the
attributes of a loader that was passed to fit, the one for validation from the arguments of a loader made in a hook.
"""

import tempfile
import warnings

import torch
from common import Record, Rows, loader_context, model, must, options


def main():
    import lightning
    from lightning.pytorch.utilities.warnings import PossibleUserWarning

    warnings.simplefilter("ignore", PossibleUserWarning)
    given = options("lightning", ("one", "ddp"))
    record = Record(given)

    def loader(dataset, **settings):
        return torch.utils.data.DataLoader(
            dataset,
            batch_size=6,
            num_workers=2,
            persistent_workers=True,
            multiprocessing_context=loader_context(given),
            **settings,
        )

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()

        def training_step(self, batch, number):
            record.saw(batch)
            loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            record.losses.append(loss.item())
            return loss

        def validation_step(self, batch, number):
            record.saw(batch)
            record.losses.append(torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]).item())

        def val_dataloader(self):
            return loader(Rows(24))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    lightning.seed_everything(given.seed, workers=True, verbose=False)
    module = Module()
    passed = loader(Rows(60), shuffle=True)
    with tempfile.TemporaryDirectory() as root:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=2 if given.variant == "ddp" else 1,
            strategy="ddp" if given.variant == "ddp" else "auto",
            max_epochs=2,
            num_sanity_val_steps=1,
            default_root_dir=root,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, passed)
    ddp = given.variant == "ddp"
    samplers = [type(one.sampler).__name__ for one in (trainer.train_dataloader, trainer.val_dataloaders)]
    must(trainer.world_size == (2 if ddp else 1), "as many trainers as were asked for")
    must((trainer.train_dataloader is not passed) == ddp, "the loader is made anew under ddp, and only there")
    must(samplers == (["DistributedSampler"] * 2 if ddp else ["RandomSampler", "SequentialSampler"]), samplers)
    record.write(module, trainer.global_rank)


if __name__ == "__main__":
    main()
