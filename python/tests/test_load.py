"""`ullage.load`: a recording in Python."""

import subprocess

import pytest

import ullage
from ullage._binary import find_binary

pyarrow = pytest.importorskip("pyarrow")


def test_a_recording_is_read_with_roles_and_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_HOME", str(tmp_path / "home"))
    subprocess.run([find_binary(), "run", "-q", "--", "sleep", "0.3"], check=True)
    recording = ullage.load()
    assert recording.verdict["healthy"] is True and recording.verdict["run"] in repr(recording)
    processes = recording["processes"]
    assert set(processes["role"].to_pylist()) == {"main"}
    assert all(size > 0 for size in processes["rss_bytes"].to_pylist() if size is not None)
    seconds = processes["seconds"].to_pylist()
    assert seconds == sorted(seconds) and 0 <= seconds[0] < 5
    assert len(list(recording)) == len(recording) == 9
    with pytest.raises(KeyError, match="processes"):
        recording["nothing"]
    again = ullage.load(tmp_path / "home" / recording.verdict["run"])
    assert again["ticks"].equals(recording["ticks"])


def test_what_cannot_be_read_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_HOME", str(tmp_path))
    with pytest.raises(ullage.Error, match="recording"):
        ullage.load("nothing")
