"""`python -m ullage`: the `ullage` command of this installation."""

from __future__ import annotations

import os
import sys

from ullage._binary import find_binary
from ullage._errors import NotInstalled


def main() -> None:
    try:
        binary = find_binary()
    except NotInstalled as error:
        sys.exit(f"ullage: {error}")
    os.execv(binary, ["ullage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
