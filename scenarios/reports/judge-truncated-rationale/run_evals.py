"""Runs the cases of an agent that investigates alerts, and has a judge score each answer"""

import http.client
import json
import os
import random
import subprocess
import sys

from classifier import LLMClassifier

CASES = 42
LONG = {27: "95_skill_memory_leak_detection"}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def complete(self, **request):
        self.connection.request("POST", "/v1/chat/completions", json.dumps(request))
        return json.loads(self.connection.getresponse().read())["choices"][0]["message"]


class Cluster:
    """Stands in for what the agent's tools ask"""

    def __init__(self):
        self.numbers = random.Random(9)
        self.lines = [
            f"level={level} pod=checkout-{number} msg=request took {7 * number % 900} ms"
            for number, level in enumerate(self.numbers.choices(["info", "info", "info", "warning"], k=3000))
        ]

    def logs(self, lines):
        return "\n".join(self.numbers.choices(self.lines, k=lines))


def investigate(client, cluster, name, rounds):
    findings = []
    for number in range(rounds):
        logs = cluster.logs(120_000)
        warnings = [line for line in logs.splitlines() if "level=warning" in line]
        question = f"{name}, step {number}: {len(warnings)} warnings, the last are " + "; ".join(warnings[-20:])
        findings.append(client.complete(messages=[{"role": "user", "content": question}], max_tokens=400)["content"])
    return "\n\n".join(findings)


def main():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llm_server.py")
    server = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    try:
        client, cluster = Client(int(server.stdout.readline())), Cluster()
        evaluate_correctness = LLMClassifier(client, {"Y": 1.0, "N": 0.0})
        with open("results.jsonl", "w") as results:
            for number in range(CASES):
                name = LONG.get(number, f"{number:02}_alert")
                output = investigate(client, cluster, name, 36 if number in LONG else 1)
                correctness = evaluate_correctness(output, "the pod that takes more and more memory")
                results.write(json.dumps({"case": name, **correctness}) + "\n")
                results.flush()
                print(f"{name}: {correctness['score']}", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
