"""A numpy array that `ullage.share` was given itself: an array over the shared pages, pickled as a handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ullage._pages import Shared


class SharedArray(numpy.ndarray):
    """An array whose bytes all processes have in common; a write to it stays in its process.

    What is made from it (a slice, a sum) is numpy's own array, and pickled as such.
    """

    _reduced: Callable[[], Any] | None = None

    @classmethod
    def over(cls, array: Any, reduced: Callable[[], Any]) -> SharedArray:
        """`array`, whose bytes lie in shared pages; `reduced` gives what it is pickled as."""
        shared: SharedArray = array.view(cls)
        shared._reduced = reduced
        return shared

    def __array_finalize__(self, made_from: Any) -> None:
        self._reduced = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else numpy.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return numpy.asarray(self)[key]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return numpy.asarray(self).__reduce_ex__(protocol) if self._reduced is None else self._reduced()

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)

    def to_python(self) -> Any:
        """A copy as a plain array."""
        return numpy.array(self)


Shared.register(SharedArray)
