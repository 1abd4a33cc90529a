"""An agent that starts a training in the background and looks at its log now and then"""

import json
import re
import socket
import sys
import time

import torch

torch.set_num_threads(1)
THINK_S = 3.0


class Model(torch.nn.Module):
    """Stands for the language model that decides on the next call"""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 64)
        self.recurrent = torch.nn.GRU(64, 96, batch_first=True)

    @torch.inference_mode()
    def think(self, text, seconds):
        until = time.monotonic() + seconds
        tokens = torch.tensor(list(text.encode()[-512:] or b" "))[None]
        while time.monotonic() < until:
            hidden, _ = self.recurrent(self.embedding(tokens))
        return hidden.norm().item()


def main():
    port, *command = sys.argv[1:]
    torch.manual_seed(0)
    model = Model()
    with socket.create_connection(("127.0.0.1", int(port))) as connection, connection.makefile("rwb") as gateway:

        def call(tool, **arguments):
            gateway.write(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
            gateway.flush()
            return json.loads(gateway.readline())

        session = call("background_process", command=command)["session"]
        turn, running = 0, True
        while running:
            answer = call("process", action="log", session=session)
            running = answer["running"]
            steps = re.findall(r"step (\d+): loss ([\d.]+)", answer["log"])
            turn += 1
            print(f"turn {turn}: {steps[-1] if steps else 'no step yet'}", flush=True)
            model.think(answer["log"], THINK_S)
    return answer["exit_code"]


if __name__ == "__main__":
    sys.exit(main())
