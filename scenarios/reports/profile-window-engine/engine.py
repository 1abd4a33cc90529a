"""The engine: decodes batches of sequences with a small transformer"""

LAYERS, WIDTH, HEADS, VOCABULARY, LONGEST = 4, 320, 8, 4000, 64


def build_model():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, keys, values, position):
            q, k, v = self.qkv(self.norm1(x)).view(len(x), 3, HEADS, -1).unbind(1)
            keys[:, :, position] = k
            values[:, :, position] = v
            scores = (keys[:, :, : position + 1] @ q.unsqueeze(-1)).squeeze(-1) / q.shape[-1] ** 0.5
            mixed = scores.softmax(-1).unsqueeze(2) @ values[:, :, : position + 1]
            x = x + self.out(mixed.reshape(len(x), WIDTH))
            return x + self.down(torch.relu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, token, position, cache):
            x = self.tokens(token) + self.positions.weight[position]
            for block, (keys, values) in zip(self.blocks, cache):
                x = block(x, keys, values, position)
            return self.head(x).argmax(-1)

    return Model().eval()


class Worker:
    def __init__(self, max_num_seqs):
        import torch

        self.torch = torch
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = build_model()
        shape = (max_num_seqs, HEADS, LONGEST, WIDTH // HEADS)
        self.cache = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(LAYERS)]
        self.profiler = None

    def start_profile(self, payload):
        from torch.profiler import ProfilerActivity, profile

        self.profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True)
        self.profiler.start()
        return {"profiling": True}

    def completions(self, payload):
        torch = self.torch
        with torch.inference_mode():
            token = torch.tensor(payload["prompts"]) % VOCABULARY
            for position in range(min(payload["max_tokens"], LONGEST)):
                token = self.model(token, position, self.cache)
        return {"tokens": token.tolist()}


def run(requests, answers, max_num_seqs):
    worker = Worker(max_num_seqs)
    while True:
        method, payload = requests.get()
        answers.put(getattr(worker, method)(payload))
