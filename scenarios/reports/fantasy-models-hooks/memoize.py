"""Properties that are computed once, and are computed again after their cache was cleared"""

import functools


def cached(name):
    def decorator(method):
        @functools.wraps(method)
        def wrapper(self):
            cache = self.__dict__.setdefault("_memoize_cache", {})
            if name not in cache:
                cache[name] = method(self)
            return cache[name]

        return wrapper

    return decorator


def clear_cache_hook(module, *args, **kwargs):
    module._memoize_cache = {}
