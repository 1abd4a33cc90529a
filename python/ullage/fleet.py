"""Rows of many recordings, for any engine that maps a function over paths.

    rows = ray.data.from_items(paths).map(lambda item: ullage.fleet.row(item["item"]))
    rows = spark.sparkContext.parallelize(paths).map(ullage.fleet.row)
    rows = concurrent.futures.ThreadPoolExecutor().map(ullage.fleet.row, paths)

A row is what `ullage fleet PATH --json` says of one recording: flat but for `figures`, the keys are in
docs/schema/fleet-1.json. Importing this imports no torch and no engine.
"""

from __future__ import annotations

import json
import os
import subprocess

from ullage._binary import find_binary
from ullage._errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from ullage._fleet_store import pull, push

    StrPath = Union[str, "os.PathLike[str]"]

__all__ = ["answer", "pull", "push", "row"]


def __getattr__(name: str) -> object:
    # What copies to and from object storage is loaded when it is used.
    if name in ("pull", "push"):
        import ullage._fleet_store as store

        value: object = getattr(store, name)
        return value
    raise AttributeError(f"module 'ullage.fleet' has no attribute {name!r}")


def row(path: StrPath) -> dict[str, Any]:
    """The row of the one recording in the folder `path`.

    Raises `ullage.errors.Error` where there is none, or several. One that cannot be read is a row with a `problem`.
    """
    rows: list[dict[str, Any]] = _ask(path)["rows"]
    if len(rows) != 1:
        raise Error(f"{os.fspath(path)} holds {len(rows)} recordings, and not one: ullage.fleet.answer reads several")
    return rows[0]


def answer(path: StrPath, job: str | None = None) -> dict[str, Any]:
    """What `ullage fleet PATH --json` says of all recordings below the folder `path`.

    Raises `ullage.errors.Error` where there is none.
    """
    return _ask(path, *([] if job is None else [f"--job={job}"]))


def _ask(path: StrPath, *arguments: str) -> dict[str, Any]:
    command = [find_binary(), "fleet", "--json", *arguments, "--", os.fspath(path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        said_why = done.stderr.decode(errors="replace").strip()
        raise Error(said_why or f"the command `ullage` ended with status {done.returncode}")
    said: dict[str, Any] = json.loads(done.stdout)
    return said
