"""What do the caches of `functools` hold, and how much may they?"""

import gc
import posix

import _ullage_kinds as types

MOST_CACHED = 100_000  # entries of a function's cache


def bound_of(cache):
    """The greatest length of a function's cache; None where it has none."""
    function = types.attribute(cache, "cache_parameters")
    if type(function) is not types.FunctionType:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    bound = cells["maxsize"].cell_contents if "maxsize" in cells else None
    return bound if type(bound) is int else None


def some(entries, cache, few):
    """(key, result) of some entries: a cache with a bound keeps them in links that the collector does not list."""
    if len(entries) > MOST_CACHED:
        return []
    kind = type(next(iter(dict.values(entries)), None))
    parts = [one for one in gc.get_referents(cache) if one is not kind and one is not type(cache)]
    pairs = list(zip(parts[: 2 * len(entries) : 2], parts[1 : 2 * len(entries) : 2]))
    return pairs[:: len(pairs) // few + 1]


def fits(cache, each):
    """It is full some day, and not only beyond all memory of the machine."""
    bound = bound_of(cache)
    return bound is not None and bound * each < posix.sysconf("SC_PHYS_PAGES") * posix.sysconf("SC_PAGE_SIZE")
