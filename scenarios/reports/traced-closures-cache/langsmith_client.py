"""The tracing client: calls of traceable functions become runs, which a thread sends in batches"""

import functools
import inspect
import json
import os
import queue
import threading
import time
import typing
import uuid


class Attachment:
    def __init__(self, data, mime_type):
        self.data, self.mime_type = data, mime_type


class Client:
    def __init__(self):
        self.queue, self.sent = queue.Queue(maxsize=200), 0
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        with open(os.devnull, "wb") as endpoint:
            while (run := self.queue.get()) is not None:
                endpoint.write(json.dumps(run).encode() + b"\n")
                self.sent += 1

    def close(self):
        self.queue.put(None)
        self.thread.join()


client = Client()


def _attachment_args_helper(signature, func):
    hints = typing.get_type_hints(func) if func is not None else {}
    return {name for name in signature.parameters if hints.get(name) is Attachment}


@functools.lru_cache(maxsize=1000)
def _cached_attachment_args(signature: inspect.Signature, func: typing.Optional[typing.Callable] = None):
    return _attachment_args_helper(signature, func)


def _get_inputs(signature, func, args, kwargs):
    """The arguments by their names, without those that are sent as attachments"""
    bound = signature.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    attachments = _cached_attachment_args(signature, func)
    return {name: value for name, value in bound.arguments.items() if name not in attachments}


def traceable(func, run_type="chain"):
    signature = inspect.signature(func)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        inputs = _get_inputs(signature, func, args, kwargs)
        run = {"id": uuid.uuid4().hex, "name": func.__name__, "run_type": run_type, "inputs": inputs}
        run["start_time"] = time.time()
        try:
            run["outputs"] = {"output": func(*args, **kwargs)}
        except Exception as error:
            run["error"] = repr(error)
            raise
        finally:
            run["end_time"] = time.time()
            client.queue.put(run)
        return run["outputs"]["output"]

    return wrapper
