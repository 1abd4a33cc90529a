"""A bot's client calls a C library that returns allocated strings; ctypes copies them and drops the pointers."""

import ctypes
import json
import queue
import threading
import time

SECONDS = 32.0

# strdup stands for the library's exports, whose *C.char results come from C.CString
gocode = ctypes.CDLL(None)
gocode.strdup.restype = ctypes.c_char_p
gocode.strdup.argtypes = [ctypes.c_char_p]


class NewClient:
    def __init__(self, name):
        self.uuid = name.encode()
        self.events = queue.Queue(maxsize=64)
        self.handled = 0

    def _call(self, function, *arguments):
        status = json.dumps({"function": function, "arguments": arguments, "error": "", "trace": "-" * 220})
        return gocode.strdup(status.encode())

    def mark_read(self, message_ids, chat):
        return self._call("MarkRead", message_ids, chat)

    def send_chat_presence(self, chat, state):
        return self._call("SendChatPresence", chat, state)

    def send_presence(self, presence):
        return self._call("SendPresence", presence)

    def listen(self, stop):
        number = 0
        while not stop.is_set():
            burst = [{"id": number + n, "chat": f"{n % 17}@g.us"} for n in range(400)]
            number += len(burst)
            try:
                self.events.put(burst, timeout=1)
            except queue.Full:
                continue

    def on_burst(self, burst):
        for message in burst:
            self.mark_read([message["id"]], message["chat"])
            self.send_chat_presence(message["chat"], "composing")
            if self.send_presence("available"):
                self.handled += 1


def main():
    client = NewClient("bot")
    stop = threading.Event()
    listener = threading.Thread(target=client.listen, args=(stop,))
    listener.start()
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end:
        client.on_burst(client.events.get())
        rounds += 1
        if rounds % 200 == 0:
            print("handled", client.handled, flush=True)
        time.sleep(0.02)
    stop.set()
    listener.join()


if __name__ == "__main__":
    main()
