"""Users of the chat service: each question comes with the documents that the retrieval found for it"""

import http.client
import json
import random
import sys

REQUESTS, WORDS = 150, 110_000


def main():
    numbers = random.Random(2)
    vocabulary = ["".join(numbers.choices("abcdefghijklmnoprstuvw", k=numbers.randint(4, 10))) for _ in range(6000)]
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    for number in range(REQUESTS):
        documents = " ".join(numbers.choices(vocabulary, k=WORDS))
        body = json.dumps({"question": f"question {number}", "documents": documents})
        connection.request("POST", "/chat", body)
        answer = json.loads(connection.getresponse().read())
        if number % 25 == 0:
            print(f"request {number}: {len(answer['answer'])} characters", flush=True)
    connection.close()


if __name__ == "__main__":
    main()
