"""Answers questions with a chat model, each of them traced"""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from langfuse_client import LangfuseCallbackHandler

torch.set_num_threads(1)
CALLS, CALL_S = 300, 0.09


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 64)
        self.recurrent = nn.GRU(64, 160, batch_first=True)
        self.head = nn.Linear(160, 128)

    @torch.inference_mode()
    def generate(self, text):
        until, written = time.monotonic() + CALL_S, []
        tokens = torch.tensor([ord(letter) % 128 for letter in text[-128:]])[None]
        while time.monotonic() < until:
            outputs, _ = self.recurrent(self.embedding(tokens))
            token = int(self.head(outputs[0, -1]).argmax())
            written.append(chr(97 + token % 26))
            tokens = torch.cat([tokens[:, 1:], torch.tensor([[token]])], 1)
        return "".join(written)

    def invoke(self, text, config):
        for callback in config["callbacks"]:
            callback.on_chat_model_start([text])
        response = self.generate(text)
        for callback in config["callbacks"]:
            callback.on_llm_end(response)
        return response


def answer(model, number):
    question = f"Hello {number}, how can I assist you today? " * 100
    return model.invoke(question, config={"callbacks": [LangfuseCallbackHandler()]})


def main():
    torch.manual_seed(0)
    model, letters = ChatModel().eval(), 0
    with ThreadPoolExecutor(1) as service:
        for number in range(CALLS):
            letters += len(service.submit(answer, model, number).result())
            if (number + 1) % 50 == 0:
                print(f"{number + 1} calls, {letters} letters", flush=True)


if __name__ == "__main__":
    main()
