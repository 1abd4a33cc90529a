"""Where the `ullage` command is: beside this Python, else on PATH."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig

from ullage._errors import NotInstalled


def find_binary() -> str:
    """Path of the `ullage` command that belongs to this installation.

    Raises `ullage.errors.NotInstalled` where there is none.
    """
    name = "ullage"
    places = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        places.append(sysconfig.get_path("scripts", user))
    for place in places:
        candidate = os.path.join(place, name) if place else ""
        if candidate and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    on_path = shutil.which(name)
    if on_path:
        return on_path
    raise NotInstalled(
        f"the command `ullage` is neither in {places[0]} nor on PATH: reinstall the package "
        "(pip install --force-reinstall ullage), or build it with `cargo install --path crates/run/cli`"
    )
