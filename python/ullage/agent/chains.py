"""What do elements weigh that lead to each other, as each task does that waits for the one before it?"""

import _ullage_paths as paths

MOST = 10_000  # elements, each of which is asked for its place in memory
TOO_MUCH = 1.25  # of what came


def weighed(heap, value, inside, more, came):
    """What a container holds, `inside`, of which the part `more` is new. Where that would be more than came to the
    process, what several elements lead to counts once."""
    kind = type(value)
    if inside["bytes"] * more <= TOO_MUCH * came or id(kind) not in paths.OF_CONTAINERS or len(value) > MOST:
        return inside
    once = heap.into(value, kind, chained=True)
    return {**inside, **{name: min(inside[name], once[name]) for name in ("bytes", "own_bytes")}}
