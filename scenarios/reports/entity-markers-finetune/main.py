"""Fine-tunes a pretrained encoder to tell the relation between two entities of a sentence"""

import torch
from data_loader import load_examples
from tokenizer import Tokenizer, sentences
from torch import nn
from torch.utils.data import DataLoader, RandomSampler

torch.set_num_threads(1)
EXAMPLES, BATCH, WIDTH, HEADS, RELATIONS = 12000, 16, 96, 4, 19


class RBERT(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH, padding_idx=0)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classes = nn.Linear(3 * WIDTH, RELATIONS)

    def forward(self, input_ids, attention_mask, e1_mask, e2_mask):
        hidden = self.encoder(self.embed(input_ids), src_key_padding_mask=attention_mask == 0)
        means = [hidden[:, 0]]
        for mask in (e1_mask, e2_mask):
            means.append((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1))
        return self.classes(torch.cat(means, 1))


def main():
    torch.manual_seed(0)
    tokenizer = Tokenizer()
    model = RBERT(len(tokenizer))
    tokenizer.add_special_tokens(["<e1>", "</e1>", "<e2>", "</e2>"])
    dataset = load_examples(sentences(EXAMPLES), tokenizer)
    loader = DataLoader(dataset, sampler=RandomSampler(dataset), batch_size=BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    print(f"***** Running training *****\n  Num examples = {len(dataset)}", flush=True)
    for ids, mask, _, label, e1_mask, e2_mask in loader:
        loss = nn.functional.cross_entropy(model(ids, mask, e1_mask, e2_mask), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
