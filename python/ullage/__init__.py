"""ullage: sees where every byte of a multi-process PyTorch job goes, and names the cause when it dies.

    ullage run -- python train.py          # the command
    p = ullage.Process(target=train)       # the same for one process of a program

Importing this imports no torch and no multiprocessing; what needs them is loaded when it is first used.
"""

from __future__ import annotations

from ullage.errors import Error

TYPE_CHECKING = False  # as type checkers read it; importing typing would cost more than all of this

if TYPE_CHECKING:
    from ullage._binary import find_binary
    from ullage._context import context
    from ullage._freeze import freeze
    from ullage._install import install, uninstall
    from ullage._load import load
    from ullage._mark import mark
    from ullage._pages import Shared
    from ullage._share import share
    from ullage.process import Process

__all__ = [
    "Error",
    "Process",
    "Shared",
    "context",
    "find_binary",
    "freeze",
    "install",
    "load",
    "mark",
    "share",
    "uninstall",
]
__version__ = "0.1.0"

_LAZY = {
    "Process": "ullage.process",
    "Shared": "ullage._pages",
    "context": "ullage._context",
    "find_binary": "ullage._binary",
    "freeze": "ullage._freeze",
    "install": "ullage._install",
    "load": "ullage._load",
    "mark": "ullage._mark",
    "share": "ullage._share",
    "uninstall": "ullage._install",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'ullage' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
