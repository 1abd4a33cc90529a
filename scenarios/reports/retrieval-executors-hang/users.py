"""Three users search, and give up on an answer after a while"""

import http.client
import json
import sys
import threading
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
started, answers = time.monotonic(), [0, 0]


def use(first):
    number = first
    while time.monotonic() - started < seconds:
        number += 3
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.7)
        try:
            connection.request("POST", "/search", json.dumps({"number": number}))
            connection.getresponse().read()
            answers[0] += 1
        except OSError:
            answers[1] += 1
        finally:
            connection.close()


threads = [threading.Thread(target=use, args=(first,)) for first in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{answers[0]} answers, {answers[1]} timeouts", flush=True)
