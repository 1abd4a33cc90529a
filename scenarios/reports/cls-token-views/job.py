"""Extracts the class token of each image from a vision transformer; each is a view of a whole batch's activations."""

import torch

BATCHES = 110


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return BATCHES * 32

    def __getitem__(self, index):
        return torch.rand(3, 112, 112, generator=torch.Generator().manual_seed(index))


class Vit(torch.nn.Module):
    def __init__(self, width=288, depth=2):
        super().__init__()
        self.patch = torch.nn.Conv2d(3, width, 14, 14)
        self.cls_token = torch.nn.Parameter(torch.zeros(1, 1, width))
        layer = torch.nn.TransformerEncoderLayer(width, 6, 2 * width, batch_first=True, dropout=0)
        self.blocks = torch.nn.ModuleList(torch.nn.TransformerEncoder(layer, 1).layers[0] for _ in range(depth))
        self.head = torch.nn.Linear(width, 100)

    def forward(self, images):
        tokens = self.patch(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], 1)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens[:, 0])


class Extractor:
    def __init__(self, model, module_name):
        self.model = model.eval()
        self.module_name = module_name
        self.activations = {}
        dict(model.named_modules())[module_name].register_forward_hook(self.hook)

    def hook(self, module, inputs, output):
        self.activations[self.module_name] = output

    @torch.no_grad()
    def extract_batch(self, batch, extract_cls_token=True):
        self.model(batch)
        act = self.activations[self.module_name]
        return act[:, 0, :] if extract_cls_token else act.flatten(1)

    def extract_features(self, batches):
        features = []
        for number, batch in enumerate(batches):
            features.append(self.extract_batch(batch))
            if number % 10 == 0:
                print(f"batch {number}: features of {sum(map(len, features))} images", flush=True)
        return torch.cat(features)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(Images(), batch_size=32)
    features = Extractor(Vit(), "blocks.1").extract_features(loader)
    print(f"{tuple(features.shape)}, {features.nbytes >> 10} KiB", flush=True)


if __name__ == "__main__":
    main()
