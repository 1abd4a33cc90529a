"""The client's side of the message queue, and the adapter that an engine's worker uses"""

import concurrent.futures
import itertools
import json
import socket
import threading


class MessageQueueClient:
    """Sends requests, and completes the future of each when its answer comes"""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.lines = self.connection.makefile("rb")
        self.lock = threading.Lock()
        self.uids = itertools.count()
        self.pending_futures = {}
        self.receiver = threading.Thread(target=self.receive, daemon=True)
        self.receiver.start()

    def submit(self, kind, payload):
        request = {"uid": next(self.uids), "kind": kind, "payload": payload}
        future = concurrent.futures.Future()
        with self.lock:
            self.pending_futures[request["uid"]] = (future, request)
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        return future

    def receive(self):
        for line in self.lines:
            answer = json.loads(line)
            with self.lock:
                future, _ = self.pending_futures.pop(answer["uid"])
            future.set_result(answer["result"])

    def close(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.receiver.join()
        self.lines.close()
        self.connection.close()


class WorkerAdapter:
    def __init__(self, client, instance):
        self.client, self.instance = client, instance
        self.store_futures, self.retrieve_futures = {}, {}
        client.submit("REGISTER", {"instance": instance}).result()

    def ping(self):
        self.client.submit("PING", {"instance": self.instance}).result()

    def retrieve(self, request_id, tokens):
        payload = {"instance": self.instance, "request_id": request_id, "token_ids": tokens}
        self.retrieve_futures[request_id] = self.client.submit("RETRIEVE", payload)

    def store(self, request_id, tokens):
        payload = {"instance": self.instance, "request_id": request_id, "token_ids": tokens}
        self.store_futures[request_id] = self.client.submit("STORE", payload)

    def get_finished(self):
        """The requests whose transfers are over"""
        finished = set()
        for futures in (self.store_futures, self.retrieve_futures):
            over = [request_id for request_id, future in futures.items() if future.done()]
            for request_id in over:
                del futures[request_id]
            finished.update(over)
        return finished
