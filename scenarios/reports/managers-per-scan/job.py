"""Searches the messages of a workspace for a list of signatures, with a process for each page of results."""

import multiprocessing
import re
import time

import numpy as np

SIGNATURES = 34
PAGES = 2


class Workspace:
    """What the API has sent: channels of messages, and an index of their words."""

    def __init__(self):
        rng = np.random.default_rng(7)
        words = [bytes(rng.integers(97, 123, 6, np.uint8)).decode() for _ in range(500)]
        picks = rng.integers(0, 500, (8000, 24))
        self.messages = [" ".join(words[pick] for pick in row) for row in picks]
        self.words = words

    def page(self, number):
        return self.messages[number::PAGES]


def multiprocess_page(workspace, pattern, page, results, potential_matches, errors):
    try:
        for message in workspace.page(page):
            if pattern.search(message):
                potential_matches.append(message[:40])
                if message.count("e") > 4:
                    results.append(message)
    except OSError as error:
        errors.append(str(error))


def find_messages(workspace, signature):
    results = multiprocessing.Manager().list()
    potential_matches = multiprocessing.Manager().list()
    errors = multiprocessing.Manager().list()
    pattern = re.compile(signature)
    processes = [
        multiprocessing.Process(
            target=multiprocess_page, args=(workspace, pattern, page, results, potential_matches, errors)
        )
        for page in range(PAGES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return {"signature": signature, "results": results, "potential": potential_matches, "errors": errors}


def main():
    workspace = Workspace()
    report = []
    for number in range(SIGNATURES):
        signature = rf"\b{workspace.words[number * 7][:3]}\w+ {workspace.words[number * 3][:1]}\w+"
        report.append(find_messages(workspace, signature))
        found = report[-1]
        print(f"{signature}: {len(found['results'])} of {len(found['potential'])} messages", flush=True)
        time.sleep(0.4)  # the API's rate limit
    print(sum(len(found["results"]) for found in report), "results")


if __name__ == "__main__":
    main()
