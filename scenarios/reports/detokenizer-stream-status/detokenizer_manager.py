"""The detokenizer: turns the tokens of each running request into text"""

import collections
import dataclasses

MAX_STATES = 96


@dataclasses.dataclass
class DecodeStatus:
    decoded_text: str = ""
    decode_ids: list = dataclasses.field(default_factory=list)
    read_offset: int = 0


class LimitedCapacityDict(collections.OrderedDict):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity

    def __setitem__(self, key, value):
        if len(self) >= self.capacity:
            self.popitem(last=False)
        super().__setitem__(key, value)


class DetokenizerManager:
    def __init__(self, incoming, outgoing):
        self.incoming, self.outgoing = incoming, outgoing
        self.words = [f"w{number:x} " for number in range(2000)]
        self.decode_status = LimitedCapacityDict(MAX_STATES)

    def event_loop(self):
        while (batch := self.incoming.recv()) is not None:
            texts = []
            for rid, first, token, finished in batch:
                if first:
                    self.decode_status[rid] = DecodeStatus()
                status = self.decode_status[rid]
                status.decode_ids.append(token)
                new = "".join(self.words[i] for i in status.decode_ids[status.read_offset :])
                status.read_offset = len(status.decode_ids)
                status.decoded_text += new
                texts.append((rid, new, finished))
            self.outgoing.send(texts)


def run_detokenizer_process(incoming, outgoing):
    DetokenizerManager(incoming, outgoing).event_loop()
