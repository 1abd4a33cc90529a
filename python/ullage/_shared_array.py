"""A numpy array that `ullage.share` was given itself: an array over the shared pages, pickled as a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ullage import _share

if TYPE_CHECKING:
    from ullage import _native


class SharedArray(numpy.ndarray):
    """An array whose bytes all processes have in common; a write to it stays in its process.

    What is made from it (a slice, a sum) is numpy's own array, and pickled as such.
    """

    _pages: _native.Pages | None = None
    _at = 0

    @classmethod
    def over(cls, array: Any, pages: _native.Pages, at: int) -> SharedArray:
        """`array`, whose bytes are at this place of the pages."""
        shared: SharedArray = array.view(cls)
        shared._pages, shared._at = pages, at
        return shared

    def __array_finalize__(self, made_from: Any) -> None:
        self._pages = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else numpy.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        return numpy.asarray(self)[key]

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._pages is None:
            return numpy.asarray(self).__reduce_ex__(protocol)
        return _share._reduce(self._pages, self._at)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)

    def to_python(self) -> Any:
        """A copy as a plain array."""
        return numpy.array(self)


_share.Shared.register(SharedArray)
