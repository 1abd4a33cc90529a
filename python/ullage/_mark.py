"""Marks a moment in the recording of the run that this process is part of.

Over a connection of its own to the agent's socket: it may be called in any process and thread of the job, after a
fork too, and where the agent is kept out of a Python (`-I`).
"""

from __future__ import annotations

import json
import os
import socket

_MOST = 200  # characters, as recorded


def mark(text: str) -> bool:
    """Marks this moment, `ullage.mark("epoch 3")`; it then stands in the report, the live view, the page and exports.

    False where nothing listens: the program is not run by `ullage run`. Never raises for that, and never waits.
    """
    path = os.environ.get("ULLAGE_AGENT_SOCKET")
    if not path or os.environ.get("ULLAGE_DISABLE") == "1":
        return False
    message = json.dumps({"kind": "mark", "text": str(text)[:_MOST]}).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.setblocking(False)
            connection.connect(path)
            connection.send(message, socket.MSG_NOSIGNAL)
    except OSError:
        return False
    return True
