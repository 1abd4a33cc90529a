"""An agent: talks to one model for a while, then lets another summarise, and so on"""

import http.client
import itertools
import json
import sys
import time

SECONDS, WITH_MODEL_S = 34.0, 2.6


def generate(port, model, prompt):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    request = json.dumps({"model": model, "prompt": prompt, "num_predict": 12})
    connection.request("POST", "/api/generate", request, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def main():
    port, models = int(sys.argv[1]), sys.argv[2:]
    began, answers = time.monotonic(), 0
    for model in itertools.cycle(models):
        until, prompt = time.monotonic() + WITH_MODEL_S, f"summarise chat {answers}"
        while time.monotonic() < until:
            answer = generate(port, model, prompt)
            prompt = f"go on after {answer['tokens'][-1]}"
            answers += 1
        print(f"{answers} answers, now from {model}; loaded: {', '.join(answer['loaded'])}", flush=True)
        if time.monotonic() - began >= SECONDS:
            break


if __name__ == "__main__":
    main()
