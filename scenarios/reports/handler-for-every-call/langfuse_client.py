"""The tracing client: events go to a queue, and consumers in threads send them in batches"""

import atexit
import json
import os
import queue
import threading
import time

BATCH_BYTES = 600_000


class Consumer(threading.Thread):
    def __init__(self, events, identifier, flush_interval=2.0):
        super().__init__(daemon=True, name=f"consumer-{identifier}")
        self.events, self.flush_interval = events, flush_interval
        self.running = True
        self.buffer = bytearray(b" ") * BATCH_BYTES

    def run(self):
        with open(os.devnull, "wb", buffering=0) as ingestion:
            while self.running:
                size = self.next_batch()
                if size:
                    ingestion.write(memoryview(self.buffer)[:size])

    def next_batch(self):
        size, until = 0, time.monotonic() + self.flush_interval
        while (left := until - time.monotonic()) > 0 and self.running:
            try:
                event = self.events.get(timeout=left)
            except queue.Empty:
                break
            if event is None:
                break
            data = json.dumps(event).encode()[: BATCH_BYTES - size]
            self.buffer[size : size + len(data)] = data
            size += len(data)
        return size

    def pause(self):
        self.running = False


class TaskManager:
    def __init__(self):
        self.ingestion_queue, self.media_queue = queue.Queue(1000), queue.Queue(1000)
        self.consumers = [Consumer(self.ingestion_queue, "ingestion"), Consumer(self.media_queue, "media")]
        for consumer in self.consumers:
            consumer.start()
        atexit.register(self.join)

    def add_task(self, event):
        self.ingestion_queue.put(event, block=False)

    def join(self):
        for consumer in self.consumers:
            consumer.pause()
            consumer.events.put(None)
        for consumer in self.consumers:
            consumer.join()


class Langfuse:
    def __init__(self, host="http://localhost:3000"):
        self.host = host
        self.task_manager = TaskManager()

    def event(self, kind, **body):
        self.task_manager.add_task({"type": kind, "timestamp": time.time(), "body": body})


class LangfuseCallbackHandler:
    def __init__(self):
        self.langfuse = Langfuse()

    def on_chat_model_start(self, messages):
        self.langfuse.event("generation-create", input=messages)

    def on_llm_end(self, response):
        self.langfuse.event("generation-update", output=response)
