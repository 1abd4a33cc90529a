"""Recordings to and from object storage: `ullage.fleet.push` and `ullage.fleet.pull`, over pyarrow's file systems.

The folders are those of `ullage run --fleet DIR`, `job=…/node=…/rank=…/attempt=…`, which the command makes in
`crates/run/cli/src/fleet_copy/place.rs`.
pyarrow is imported only when something is pushed or pulled; `pip install ullage[fleet]` brings it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from typing import Any, NamedTuple

from ullage.errors import Error

_RUN = "run.json"
_VERDICT = "verdict.json"
_TAILS = "tails.zst"
_MOST_VALUE = 200  # bytes of a value in a folder's name
_MOST_ATTEMPTS = 100_000


class _Remote(NamedTuple):
    """A place in a file system of pyarrow."""

    files: Any
    path: str


def push(run_or_home: str | os.PathLike[str], url: str) -> list[str]:
    """Copies recordings to `url` (`s3://bucket/prefix`, `gs://…`, `file:///…`), and returns the folders that they got.

    `run_or_home` is one recording, or a folder of recordings at any depth: `$ULLAGE_HOME`, or the DIR of
    `ullage run --fleet DIR`. A recording gets the folder that it has there already, else a new one: never that of
    another.
    """
    source = os.fspath(run_or_home)
    runs = list(_recordings(source))
    if not runs:
        raise Error(f"{source} holds no recording: none of its folders has a {_RUN}")
    remote = _remote(url)
    return [_push_one(run, remote) for run in runs]


def pull(url: str, directory: str | os.PathLike[str]) -> list[str]:
    """Copies all recordings below `url` into `directory`, with the folders that they have there, and returns those.

    What `directory` holds of a recording is replaced; a recording that is there only is left alone.
    """
    remote = _remote(url)
    found: dict[str, list[str]] = {}
    for path in _files_below(remote):
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    pulled = []
    for folder, names in sorted(found.items()):
        if _RUN not in names or {"..", "."} & set(folder.split("/")):
            continue
        into = os.path.join(os.fspath(directory), *folder.split("/")) if folder else os.fspath(directory)
        os.makedirs(into, mode=0o700, exist_ok=True)
        # One after the other: a verdict counts only where its file is not older than that of the run.
        for name in _in_order(names):
            with remote.files.open_input_stream(_joined(remote.path, folder, name)) as stream:
                _replace(os.path.join(into, name), stream.read())
        for gone in set(os.listdir(into)) - set(names):
            if _is_part(gone) or gone == _TAILS:
                os.unlink(os.path.join(into, gone))
        pulled.append(into)
    if not pulled:
        raise Error(f"{url} holds no recording: none of its folders has a {_RUN}")
    return pulled


def _remote(url: str) -> _Remote:
    try:
        from pyarrow import fs  # type: ignore[import,unused-ignore]
    except ImportError as error:
        raise Error("recordings are pushed and pulled by pyarrow: pip install ullage[fleet]") from error
    if "://" not in url:
        url = "file://" + os.path.abspath(url)
    try:
        files, path = fs.FileSystem.from_uri(url)
    except (ValueError, OSError) as error:
        raise Error(f"{url} cannot be opened: {error}") from error
    return _Remote(files, path.rstrip("/"))


def _recordings(folder: str) -> Iterator[str]:
    """Those at or below a folder, sorted."""
    for here, folders, names in os.walk(folder):
        folders.sort()
        if _RUN in names:
            folders.clear()
            yield here


def _push_one(run: str, remote: _Remote) -> str:
    text = _read(os.path.join(run, _RUN))
    if text is None:
        raise Error(f"{run} vanished while it was pushed")
    place = _claim(remote, json.loads(text), run)
    remote.files.create_dir(place, recursive=True)
    names = [name for name in os.listdir(run) if _is_copied(name)]
    there = {path.rpartition("/")[2] for path in _files_below(_Remote(remote.files, place))}
    # A part that was merged away while it was to be read is in another one, which is read in the next pass.
    for _ in range(4):
        vanished = False
        for name in _in_order(names):
            content = _read(os.path.join(run, name))
            if content is None:
                vanished = True
                continue
            with remote.files.open_output_stream(f"{place}/{name}") as stream:
                stream.write(content)
        names = [name for name in os.listdir(run) if _is_copied(name)]
        if not vanished:
            break
    for gone in there - set(names):
        if _is_part(gone) or gone.endswith(".arrows") or gone == _TAILS:
            remote.files.delete_file(f"{place}/{gone}")
    return place


def _claim(remote: _Remote, run: dict[str, Any], path: str) -> str:
    """The folder of a recording: the one that it has there, else a free one."""
    folders = [part for part in os.path.abspath(path).split(os.sep)[-4:-1]]
    if [folder.partition("=")[0] for folder in folders] != ["job", "node", "rank"]:
        # Not one that was copied by `ullage run --fleet`.
        values = {"job": run.get("job"), "node": run.get("node") or platform.node(), "rank": run.get("rank")}
        folders = [f"{name}={_encoded(value)}" for name, value in values.items()]
    above = _joined(remote.path, *folders)
    first = run.get("attempt") or 0
    for attempt in range(first, first + _MOST_ATTEMPTS):
        place = f"{above}/attempt={attempt}"
        there = _run_at(remote, place)
        if there is None or _identity(there) == _identity(run):
            return place
    raise Error(f"{above} holds {_MOST_ATTEMPTS} recordings")


def _run_at(remote: _Remote, place: str) -> dict[str, Any] | None:
    try:
        with remote.files.open_input_stream(f"{place}/{_RUN}") as stream:
            run: dict[str, Any] = json.loads(stream.read())
            return run
    except FileNotFoundError:
        return None
    except ValueError:
        return {}


def _identity(run: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(run.get(name) for name in ("run", "started_unix", "recorder"))


def _encoded(value: object) -> str:
    """As `place.rs` encodes it."""
    text = "" if value is None else str(value)
    if text in ("", "-"):
        return "%2D" if text else "-"
    encoded = ""
    for letter in text:
        before = encoded
        if letter in "/=%" or ord(letter) < 32 or 127 <= ord(letter) < 160:
            encoded += "".join(f"%{byte:02X}" for byte in letter.encode())
        else:
            encoded += letter
        if len(encoded.encode()) > _MOST_VALUE:
            return before + "~" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return encoded


def _files_below(remote: _Remote) -> Iterator[str]:
    from pyarrow import fs  # type: ignore[import,unused-ignore]

    beginning = remote.path + "/" if remote.path else ""
    selector = fs.FileSelector(remote.path, recursive=True, allow_not_found=True)
    for info in remote.files.get_file_info(selector):
        if info.type == fs.FileType.File:
            yield info.path[len(beginning) :]


def _in_order(names: list[str]) -> list[str]:
    """As readers rely on each other's files: parts and tails, then the run, then its verdict."""
    return sorted(filter(_is_copied, names), key=lambda name: (name == _VERDICT, name == _RUN, name))


def _is_copied(name: str) -> bool:
    return name in (_RUN, _VERDICT, _TAILS) or name.endswith(".arrows") or _is_part(name)


def _is_part(name: str) -> bool:
    return name.endswith(".parquet")


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _replace(path: str, content: bytes) -> None:
    unfinished = f"{path}.{os.getpid()}.tmp"
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    os.replace(unfinished, path)


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
