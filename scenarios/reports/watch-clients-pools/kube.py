"""A small client of the API, with watches"""

import json
import queue
import socket
import threading
import types

NODE_CPUS = 16


class ThreadPool:
    """Threads for requests that are to run in the background"""

    def __init__(self, processes=None):
        self.tasks = queue.SimpleQueue()
        self.threads = []
        for number in range(processes or NODE_CPUS):
            thread = threading.Thread(target=self.work, daemon=True, name=f"api-pool-{number}")
            thread.start()
            self.threads.append(thread)

    def apply_async(self, function, arguments=()):
        self.tasks.put((function, arguments))

    def work(self):
        while (task := self.tasks.get()) is not None:
            function, arguments = task
            function(*arguments)

    def close(self):
        for _ in self.threads:
            self.tasks.put(None)


class Configuration:
    port = None


class ApiClient:
    def __init__(self, configuration=None):
        self.configuration = configuration or Configuration()
        self.pool = ThreadPool()
        self.default_headers = {"User-Agent": "Swagger-Codegen/6.0.0/python"}

    def open_stream(self, body):
        connection = socket.create_connection(("127.0.0.1", self.configuration.port))
        connection.sendall(json.dumps(body).encode() + b"\n")
        return connection

    def deserialize(self, data):
        if isinstance(data, dict):
            return types.SimpleNamespace(**{key: self.deserialize(value) for key, value in data.items()})
        if isinstance(data, list):
            return [self.deserialize(value) for value in data]
        return data


class BatchApi:
    def __init__(self, client):
        self.client = client

    def run_job(self, job):
        return self.client.open_stream(job)


class Watch:
    def __init__(self):
        self._api_client = ApiClient()

    def stream(self, function, *arguments):
        with function(*arguments) as connection, connection.makefile("rb") as lines:
            for line in lines:
                event = json.loads(line)
                yield {"type": event["type"], "object": self._api_client.deserialize(event["object"])}
