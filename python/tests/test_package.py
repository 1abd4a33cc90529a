"""The package: what importing it costs, and where it finds its command."""

import os
import subprocess
import sys

import pytest

import ullage
from ullage._binary import find_binary

SOURCE = os.path.dirname(os.path.dirname(ullage.__file__))


def run(code, **env):
    environment = dict(os.environ, PYTHONPATH=SOURCE, **env)
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_importing_it_imports_little():
    code = "import sys; before = set(sys.modules); import ullage; print(*sorted(set(sys.modules) - before))"
    imported = run(code).stdout.split()
    assert not {name for name in imported if not name.startswith("ullage")} - {"__future__"}, imported
    assert set(imported) >= {"ullage", "ullage.errors"}


def test_names_are_there_and_others_are_not():
    assert {"Process", "Error", "find_binary"} <= set(dir(ullage))
    assert issubclass(ullage.errors.NotInstalled, ullage.Error)
    assert ullage.Process.__mro__[1].__name__ == "BaseProcess"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ullage.nothing


def test_the_command_is_found_on_path_and_its_absence_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path / "scripts"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ullage.Error, match="reinstall the package"):
        find_binary()
    (tmp_path / "ullage").write_text("#!/bin/sh\n")
    (tmp_path / "ullage").chmod(0o755)
    assert find_binary() == str(tmp_path / "ullage")


def test_python_m_ullage_is_the_command():
    environment = dict(os.environ, PYTHONPATH=SOURCE)
    asked = [sys.executable, "-m", "ullage", "--version"]
    said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "") and said.stdout.startswith("ullage ")
