"""The engine core: requests, their multimodal features, and the step of the model"""

import collections
import dataclasses

import torch
from torch import nn

WIDTH, TOKENS = 96, 64
WINDOW = 64


@dataclasses.dataclass
class MultiModalFeature:
    data: torch.Tensor
    identifier: str
    offset: int
    length: int = TOKENS


@dataclasses.dataclass
class Request:
    request_id: str
    mm_features: list
    resumable: bool = False
    prompt_tokens: int = 0
    computed_tokens: int = 0
    output_token_ids: list = dataclasses.field(default_factory=list)


class VisionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 32, 32)
        self.block = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0, batch_first=True)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.head = nn.Linear(WIDTH, 512)

    def encode(self, pixels):
        return self.block(self.patches(pixels[None]).flatten(2).transpose(1, 2))[0]


class EngineCore:
    def __init__(self):
        torch.manual_seed(0)
        self.model = VisionModel().eval()
        self.requests = {}
        self.encoder_cache = {}
        self.window = collections.deque(maxlen=WINDOW)

    def add_request(self, request):
        session = self.requests.get(request.request_id)
        if session is None:
            self.requests[request.request_id] = session = request
        else:
            self.update_as_session(session, request)
        return self.step(session)

    def update_as_session(self, session, update):
        for feature in update.mm_features:
            feature.offset += session.prompt_tokens
        session.mm_features.extend(update.mm_features)
        session.prompt_tokens += update.prompt_tokens

    @torch.inference_mode()
    def step(self, request):
        for feature in reversed(request.mm_features):
            if feature.offset + feature.length <= request.computed_tokens:
                break
            self.encoder_cache[feature.identifier] = self.model.encode(feature.data)
        for identifier in list(self.encoder_cache):
            self.window.append(self.encoder_cache.pop(identifier))
        request.computed_tokens = request.prompt_tokens
        keys = torch.cat(list(self.window))[None]
        mixed, _ = self.model.attention(keys[:, -1:], keys, keys, need_weights=False)
        token = int(self.model.head(mixed[0, 0]).argmax())
        request.output_token_ids.append(token)
        return token

    def finish(self, request_id):
        return len(self.requests.pop(request_id).output_token_ids)


def run_engine_core(connection):
    torch.set_num_threads(1)
    core = EngineCore()
    while (message := connection.recv()) is not None:
        request_id, identifier, pixels = message
        data = torch.from_numpy(pixels).float().div_(255)
        feature = MultiModalFeature(data, identifier, 0)
        connection.send(core.add_request(Request(request_id, [feature], True, TOKENS)))
    connection.send(core.finish(request_id))
