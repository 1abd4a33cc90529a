"""The exceptions of ullage that cost nothing to import. Every message says what to do.

A program knows them by `ullage.errors`, and so do tracebacks and pickles.
"""

from __future__ import annotations

_PUBLIC = "ullage.errors"


class Error(Exception):
    """Base of all exceptions of ullage."""

    __module__ = _PUBLIC


class NotInstalled(Error):
    """The `ullage` command was not found."""

    __module__ = _PUBLIC


class Unsupported(Error):
    """What was asked for cannot be done on this machine or in this way."""

    __module__ = _PUBLIC


class NotShareable(Error, ValueError):
    """An object has a part that `ullage.share` cannot take; the message says where and what to do instead."""

    __module__ = _PUBLIC
