"""What ullage raises. Every message says what to do."""

from __future__ import annotations


class Error(Exception):
    """Base of all exceptions of ullage."""


class NotInstalled(Error):
    """The `ullage` command was not found."""


class Unsupported(Error):
    """What was asked for cannot be done on this machine or in this way."""
