"""One streamed request of the benchmark"""

import json
import time

READ = 65536


class StreamedResponseHandler:
    """Complete events out of the chunks of a response"""

    def __init__(self):
        self.buffer = ""

    def add_chunk(self, chunk):
        self.buffer += chunk.decode("utf-8")
        *complete, self.buffer = self.buffer.split("\n\n")
        return [message.removeprefix("data: ") for message in complete if message]


async def request(reader, writer, prompt, max_tokens, echo):
    """The text of the answer, the time to its first token and between tokens"""
    body = {"prompt": prompt, "max_tokens": max_tokens, "echo": echo}
    started = last = time.monotonic()
    writer.write(json.dumps(body, ensure_ascii=False).encode() + b"\n")
    await writer.drain()
    handler, text, first, between = StreamedResponseHandler(), [], None, []
    while True:
        for message in handler.add_chunk(await reader.read(READ)):
            if message == "[DONE]":
                return "".join(text), first, between
            text.append(json.loads(message)["text"])
            now = time.monotonic()
            if first is None:
                first = now - started
            else:
                between.append(now - last)
            last = now
