"""Queue prompts: each workflow a few times, then all of them in turn."""

import json
import sys
import time
import urllib.request

WORKFLOWS = {
    "txt2img": {"checkpoint": 1, "width": 1900},
    "upscale": {"checkpoint": 2, "width": 2100},
    "supir": {"checkpoint": 3, "width": 2300},
    "inpaint": {"checkpoint": 4, "width": 2000},
}
FIRST, SECONDS = 3, 42


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main():
    port = sys.argv[1]
    begin, seed = time.monotonic(), 0
    order = [name for name in WORKFLOWS for _ in range(FIRST)]
    while time.monotonic() - begin < SECONDS:
        name = order[seed] if seed < len(order) else list(WORKFLOWS)[seed % 4]
        text = f"a photo, number {seed // 5}"
        prompt = {"workflow": name, "text": text, "seed": seed, "steps": 20, **WORKFLOWS[name]}
        answer = post(port, "/prompt", prompt)
        seed += 1
        if seed % 10 == 0:
            print(f"{seed} images, {name}: {answer['mean']:.1f}", flush=True)
    post(port, "/stop", {})


if __name__ == "__main__":
    main()
