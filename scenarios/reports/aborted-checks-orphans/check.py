"""Checks one model. The workers are forked first: the library's threads would not live on in them."""

import sys

from loading import DataLoader


def main():
    name, pids = sys.argv[1:]
    loader = DataLoader(32, 2, pids)
    from comparing import compare

    compare(name, loader)


if __name__ == "__main__":
    main()
