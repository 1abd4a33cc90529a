"""A driver: deploys a version of the classifier, and checks it with requests for a few seconds"""

import argparse
import json
import random
import socket
import time
import uuid

SECONDS = 2.9
WORDS = "the of model server memory request batch tensor worker queue token prompt latency replica version".split()


def ask(connection, answers, **message):
    connection.sendall(json.dumps(message).encode() + b"\n")
    return json.loads(answers.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", type=int, default=0)
    parser.add_argument("--namespace", default=None)
    parser.add_argument("--shutdown", action="store_true")
    arguments = parser.parse_args()
    namespace = arguments.namespace or f"anonymous_{uuid.uuid4().hex}"
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", arguments.port)) as connection:
        if arguments.shutdown:
            connection.sendall(b'{"kind": "shutdown"}\n')
            return
        answers = connection.makefile()
        target = {"namespace": namespace, "name": "text_classifier"}
        ask(connection, answers, kind="deploy", version=arguments.version, **target)
        labels, answer = {}, {"count": 0}
        while time.monotonic() - started < SECONDS:
            text = " ".join(random.choices(WORDS, k=300))
            answer = ask(connection, answers, kind="request", text=text, **target)
            labels[answer["label"]] = labels.get(answer["label"], 0) + 1
        print(f"version {arguments.version}: {answer['count']} requests, {len(labels)} labels", flush=True)


if __name__ == "__main__":
    main()
