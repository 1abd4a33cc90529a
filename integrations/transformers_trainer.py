"""Does Hugging Face's Trainer, which makes its loaders itself, train the same over the arena?

A tiny BERT with random weights, two epochs with an evaluation after each; then a second Trainer resumes from the
checkpoint that the first wrote in the middle of the second epoch. Nothing is downloaded.
"""

import os
import tempfile

import torch
from common import CLASSES, Record, must, options

# A batch of tokens is larger than what ullage copies out: these are not made by torch's collate.
VOCABULARY, LENGTH = 50, 512


class Sentences(torch.utils.data.Dataset):
    """Random tokens with a class; one token in ten is masked in the worker."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(2)
        self.tokens = torch.randint(1, VOCABULARY, (count, LENGTH), generator=generator)
        self.labels = torch.randint(0, CLASSES, (count,), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index].masked_fill(torch.rand(LENGTH) < 0.1, 0)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": int(self.labels[index])}


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    given = options("transformers.trainer")
    record = Record(given)
    # Where ullage is installed, and where there is none of it, this is the start method's name, as documented.
    chosen = given.method
    if given.way == "context":
        import ullage

        chosen = ullage.context(given.method)

    class Trainer(transformers.Trainer):
        def training_step(self, model, inputs, *args, **kwargs):
            record.saw(inputs)
            loss = super().training_step(model, inputs, *args, **kwargs)
            record.losses.append(loss.item())
            return loss

        def prediction_step(self, model, inputs, *args, **kwargs):
            record.saw(inputs)
            found = super().prediction_step(model, inputs, *args, **kwargs)
            record.losses.append(found[0].item())
            return found

    def trainer(root):
        transformers.set_seed(given.seed)
        config = transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=LENGTH,
            num_labels=CLASSES,
        )
        return Trainer(
            model=transformers.BertForSequenceClassification(config),
            args=transformers.TrainingArguments(
                output_dir=root,
                num_train_epochs=2,
                per_device_train_batch_size=6,
                per_device_eval_batch_size=6,
                dataloader_num_workers=2,
                dataloader_multiprocessing_context=chosen,
                eval_strategy="epoch",
                save_steps=14,
                learning_rate=1e-3,
                seed=given.seed,
                use_cpu=True,
                report_to=[],
                logging_steps=5,
                disable_tqdm=True,
            ),
            train_dataset=Sentences(60),
            eval_dataset=Sentences(12),
        )

    with tempfile.TemporaryDirectory() as root:
        first = trainer(root)
        first.train()
        steps = len(record.losses)
        second = trainer(root)
        second.train(resume_from_checkpoint=os.path.join(root, "checkpoint-14"))
    # Ten steps an epoch and two batches of evaluation; the second Trainer has six steps and one evaluation left.
    must((steps, len(record.losses) - steps) == (24, 8), "the second Trainer resumed where the checkpoint was")
    record.write(second.model)


if __name__ == "__main__":
    main()
