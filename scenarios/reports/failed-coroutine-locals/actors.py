"""Threads that take messages and run the actors, whose coroutines share an event loop"""

import asyncio
import json
import logging
import socket
import threading

logger = logging.getLogger("worker")


class EventLoopThread(threading.Thread):
    def __init__(self, interval=1.0):
        super().__init__(daemon=True, name="event-loop")
        self.loop = asyncio.new_event_loop()
        self.interval = interval

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run_coroutine(self, coroutine):
        done = threading.Event()

        async def wrapped():
            try:
                return await coroutine
            finally:
                done.set()

        future = asyncio.run_coroutine_threadsafe(wrapped(), self.loop)
        while not done.wait(self.interval):
            pass
        return future.result()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()
        self.loop.close()


class WorkerThread(threading.Thread):
    def __init__(self, number, port, actors, events):
        super().__init__(name=f"worker-{number}")
        self.port, self.actors, self.events = port, actors, events

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection, connection.makefile("rwb") as broker:

            def ask(*words):
                broker.write(" ".join(words).encode() + b"\n")
                broker.flush()
                return json.loads(broker.readline())

            while message := ask("pop"):
                ask(self.process_message(message), message["id"])

    def process_message(self, message):
        try:
            result = self.events.run_coroutine(self.actors[message["actor"]](*message["args"]))
        except Exception as error:
            logger.error("Failed to process message %s: %r", message["id"], error)
            return "nack"
        logger.info("Message %s: %s", message["id"], result)
        return "ack"
