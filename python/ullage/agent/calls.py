"""Which function of C is a piece of Python in the midst of? The frames do not say: there is none of it.

The positions of the instructions do (CPython 3.11 up): a call begins in the program's text where the expression of what
it calls begins, and that one ends first. The surprise: the instruction of a call is the last one also a little after it
has returned, so that what is named is what is called, or was just now.
"""

import _ullage_steps as steps

LONGEST = 8000  # bytes of code that are taken apart
NAMES, NAME = 2, 100  # of `torch.utils.dlpack.from_dlpack` the last ones


def called(code, at):
    """`numpy.concatenate` or `values.tolist`, for the offset of a frame's last instruction; None where it is no call,
    or one of what has no name."""
    opnames = steps.names() if hasattr(code, "co_positions") else ()
    if not opnames:
        return None
    raw = code.co_code
    if not 0 <= at < len(raw) <= LONGEST:
        return None
    while at > 0 and opnames[raw[at]] == "CACHE":
        at -= 2
    if not opnames[raw[at]].startswith(("CALL", "PRECALL")):
        return None
    places = list(code.co_positions())
    begin, end = _ends(places[at // 2])
    if begin is None:
        return None
    names, extended = {}, 0
    for offset in range(0, at, 2):
        opname, argument = opnames[raw[offset]], extended | raw[offset + 1]
        extended = argument << 8 if opname == "EXTENDED_ARG" else 0
        first, last = _ends(places[offset // 2])
        if first == begin and last < end and opname not in _OF_NO_VALUE:
            names[last] = _name(code, opname, argument)
    if not names or names[max(names)] is None:
        return None
    found = [names[last] for last in sorted(names)]
    known = found[max([0] + [place + 1 for place, name in enumerate(found) if name is None]) :]
    return ".".join(known[-NAMES:])[-NAME:]


_LOADS = ("LOAD_NAME", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_DEREF", "LOAD_CLASSDEREF")
_OF_NO_VALUE = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "NOP", "PRECALL", "COPY", "SWAP")


def _ends(place):
    line, end_line, column, end_column = place
    return ((line, column), (end_line, end_column)) if None not in place else (None, None)


def _name(code, opname, argument):
    """The name that an instruction loads."""
    if opname in _LOADS or opname.startswith("LOAD_FAST") and opname.count("_FAST") == 1:
        return steps.value(code, opname, argument)
    return None
