"""The notebook's kernel: a cell in a line of JSON, and the text of its result back"""

import json
import sys

from shell import InteractiveShell


def main():
    shell = InteractiveShell(cache_size=int(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps({"text": shell.run_cell(json.loads(line)["code"])}), flush=True)


if __name__ == "__main__":
    main()
