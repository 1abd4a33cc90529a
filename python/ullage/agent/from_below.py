"""By which name can the program reach what no walk from its names came to? The globals and classes of libraries, and
then whoever refers to it, level by level.

As in paths.py no code of the program runs.
"""

import gc
import sys

import _ullage_kinds as types
import _ullage_modules as modules
import _ullage_paths as paths
from _ullage_common import thread_time


def of_libraries(wanted, until):
    """id -> (name, class) of what a library holds under a global name: itself, or an attribute of a class or an
    instance."""
    found = {}
    # Half of the time, so that there is some for what is found.
    for module in modules.leading(wanted, _PASSED_BY, max(0.0, until - thread_time()) / 2) if wanted else ():
        if not wanted or thread_time() > until:
            break
        if modules.is_program(module):
            continue
        names = module.__dict__
        module_name = modules.name_in(names)
        for name, value in list(names.items()):
            kind = type(value)
            if id(kind) in paths._PASSED_BY or kind is types.FunctionType or type(name) is not str:
                continue
            if id(value) in wanted:
                found[id(value)] = "%s.%s" % (module_name, name), ""
                wanted.discard(id(value))
                continue
            if issubclass(kind, type):
                own = types.module_of(value) == module_name
                owner, parts_of_it = value, types.namespace(value).values() if own else ()
            elif id(kind) in paths.OF_CONTAINERS or not gc.is_tracked(value):
                continue
            else:
                # Of an instance whose dict was made already, that dict; else its values themselves.
                owner, parts_of_it = kind, gc.get_referents(value)
                made = [part.values() for part in parts_of_it[:4] if type(part) is dict and not paths.is_globals(part)]
                parts_of_it = made[0] if made else parts_of_it
            for held in list(parts_of_it):
                if id(held) in wanted:
                    key = paths._key(
                        types.namespace(value) if owner is value else paths._attributes_of(value) or {}, held
                    )
                    found[id(held)] = "%s.%s.%s" % (module_name, name, key), types.type_name(owner)
                    wanted.discard(id(held))
    return found


_PASSED_BY = (types.FunctionType, types.ModuleType, *paths.CONTAINERS)
MOST_REFERRERS = 12
LEVELS = 4


def backward(value, ours, until):
    """A name in a module for what no walk came to, by asking who refers to it. Asking costs a look at every object."""
    trail = {}
    try:
        return _climb(value, trail, {id(trail), *ours}, until)
    finally:
        trail.clear()  # it may have come to hold itself


def _climb(value, trail, ours, until):
    here, found = [value], []
    for _ in range(LEVELS):
        if thread_time() > until:
            break
        own = ours | {id(here), id(found)}
        found = [one for one in finished(gc.get_referrers(*here)) if id(one) not in own][:MOST_REFERRERS]
        for one in found:
            if type(one) is types.FrameType or id(one) in trail:
                continue
            held = _held_by(one, here)
            if held is None:
                continue
            trail[id(one)] = held
            if type(one) is dict and modules.with_names(one) is not None:
                return _down(modules.name_in(one) + "." + paths._key(one, held), held, trail)
        here = [one for one in found if id(one) in trail]
        if not here:
            break
    return ""


def _references(found):
    return [sys.getrefcount(one) for one in found]


_OURS = _references([tuple([_references])])[0]


def finished(found):
    """Without tuples to which one place refers: CPython may be making one there, which it could not finish if anybody
    else referred to it."""
    return [one for one, number in zip(found, _references(found)) if type(one) is not tuple or number > _OURS + 1]


def _held_by(one, here):
    # No closure: its cells would be among those who refer, and hold what was found in a circle.
    parts_of_it = gc.get_referents(one)
    for held in here:
        for part in parts_of_it:
            if part is held:
                return held
    return None


def _down(name, value, trail):
    for _ in range(LEVELS):
        held = trail.get(id(value))
        if held is None:
            break
        step = paths._step(value, held, type(value))
        name += step if step != "." else ""
        value = held
    return name
