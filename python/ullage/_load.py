"""A recording in this Python: its verdict, and its tables as pyarrow's."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile

from ullage._binary import find_binary
from ullage._errors import Error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import pyarrow


class Recording:
    """What `ullage.load` gives: `recording["processes"]` is a table, `recording.verdict` is what the report says.

    The tables and their columns stand in docs/recording-format.md. Each row of a sample has `seconds` since the start,
    each of a process its `role` and `rss_bytes` (bytes).
    """

    def __init__(self, verdict: dict[str, Any], tables: dict[str, pyarrow.Table]) -> None:
        self.verdict = verdict
        self._tables = tables

    def __getitem__(self, table: str) -> pyarrow.Table:
        try:
            return self._tables[table]
        except KeyError:
            raise KeyError(f"{table!r} is no table of a recording; these are: {', '.join(self._tables)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<ullage recording {self.verdict['run']}: {self.verdict['headline']}>"


def load(run: str | os.PathLike[str] | None = None) -> Recording:
    """Reads a recording: the name of a run, its beginning, or its directory; the newest one where none is given.

    Needs pyarrow. Raises `ullage.errors.Error` where there is no such recording, or no pyarrow.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise Error("ullage.load gives pyarrow's tables: pip install pyarrow") from error
    wanted = [] if run is None else [os.fspath(run)]
    verdict = json.loads(_ask("report", "--json", *wanted))
    with tempfile.TemporaryDirectory(prefix="ullage-load-") as folder:
        _ask("export", *(wanted or [verdict["run"]]), "--format", "parquet", "--force", "-o", folder)
        read = pyarrow.parquet.read_table
        files = sorted(os.listdir(folder))
        tables = {file.partition(".")[0]: read(os.path.join(folder, file), memory_map=False) for file in files}
    return Recording(verdict, tables)


def _ask(*words: str) -> bytes:
    done = subprocess.run([find_binary(), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.decode(errors="replace").removeprefix("ullage: ").strip())
    return done.stdout
