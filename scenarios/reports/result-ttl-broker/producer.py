"""A site that enqueues jobs and shows their results"""

import argparse
import time
import zlib

import wire

RESULT_TTL, UNDER_WAY = 7.0, 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    connection = wire.Connection(arguments.port)
    connection.call({"command": "hello"})
    began, number, checksum = time.monotonic(), 0, 0
    while time.monotonic() - began < arguments.seconds:
        for index in range(number, number + UNDER_WAY):
            job = {"id": index, "function": "simulate", "seed": index, "result_ttl": RESULT_TTL}
            answer, _ = connection.call({"command": "push", "queue": "default", "job": job})
        for index in range(number, number + UNDER_WAY):
            _, result = connection.call({"command": "wait", "key": f"rq:results:{index}"})
            checksum = zlib.crc32(result, checksum)
        number += UNDER_WAY
        if number % 100 == 0:
            print(f"{number} jobs, {answer['keys']} results in the broker, {checksum:08x}", flush=True)
    for _ in range(arguments.workers):
        connection.call({"command": "push", "queue": "default", "job": {"function": "stop"}})
    connection.close()


if __name__ == "__main__":
    main()
