"""Searches the files below a folder for a pattern, following links"""

import os
import re
import sys


def main():
    pattern, root = re.compile(sys.argv[1]), sys.argv[2]
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                with open(path, errors="replace") as file:
                    for number, line in enumerate(file, 1):
                        if pattern.search(line):
                            print(f"{path}:{number}:{line.rstrip()}")
            except OSError as error:
                print(f"rg: {path}: {error.strerror} (os error {error.errno})", file=sys.stderr)


if __name__ == "__main__":
    main()
