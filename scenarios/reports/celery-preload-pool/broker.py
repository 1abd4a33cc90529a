"""The broker: hands out the messages of a schedule, one for each line that a worker sends"""

import json
import random
import socket
import sys

MESSAGES = 96


def main():
    source = random.Random(11)
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
        with connection, connection.makefile("rw") as stream:
            for number in range(MESSAGES):
                if not stream.readline():
                    return 1
                operator = f"provider_{source.randrange(40)}.operator_{source.randrange(5)}"
                message = {"task": number, "operator": operator, "rows": source.randrange(600_000, 1_500_000)}
                stream.write(json.dumps(message) + "\n")
                stream.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
