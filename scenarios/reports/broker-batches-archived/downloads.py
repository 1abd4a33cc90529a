"""Writes records of package downloads to the standard output, line by line, for some seconds"""

import json
import random
import sys
import time

LINE, LINES = 4000, 400


def record(draw, number):
    version = f"{draw.randrange(4)}.{draw.randrange(20)}.{draw.randrange(9)}"
    project = draw.choice(["pytest-cov", "numpy", "boto3", "requests", "attrs"])
    libraries = [{"name": f"lib-{draw.randrange(5000)}", "digest": draw.randbytes(16).hex()} for _ in range(40)]
    found = {
        "number": number,
        "country_code": draw.choice(["US", "DE", "IN", "BR"]),
        "project": project,
        "file": {"filename": f"{project}-{version}-py3-none-any.whl", "version": version, "type": "bdist_wheel"},
        "details": {"installer": "pip", "python": f"3.{draw.randrange(7, 13)}", "libraries": libraries},
    }
    line = json.dumps(found)
    return line[:-1] + ', "note": "' + draw.randbytes(LINE).hex()[: max(0, LINE - len(line))] + '"}'


def main():
    draw = random.Random(4)
    lines = [record(draw, number).encode() + b"\n" for number in range(LINES)]
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        sys.stdout.buffer.write(b"".join(draw.sample(lines, 64)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
