"""What are the instructions of a code object? As `dis` says it, but for those in which nothing is done.

`dis` itself is not asked: torch loads it, a program of the standard library alone does not, and no thread of the
agent's may import anything, since a forked child would wait for its lock. So the names of instructions are read from
the text of the file that `dis` has them from (opcode.py, from CPython 3.13 _opcode_metadata.py).
"""

import posix
import sys

import _ullage_common as common

_VERSION = sys.version_info[:2]
_EXTENDED, _NOTHING = "EXTENDED_ARG", ("CACHE", "PUSH_NULL", "NOP", "RESUME", "COPY_FREE_VARS", "MAKE_CELL", "PRECALL")
_NOTHING += ("NOT_TAKEN",)
_CONSTANTS = ("LOAD_CONST", "RETURN_CONST")
_NAMED = ("_NAME", "_ATTR", "_GLOBAL", "LOAD_METHOD", "IMPORT_FROM", "_OR_GLOBALS")
_OF_CELLS = ("DEREF", "_CLOSURE")
# How far the place of a name stands behind flags.
_SHIFTS = {
    "LOAD_GLOBAL": 1 if _VERSION >= (3, 11) else 0,
    "LOAD_ATTR": 1 if _VERSION >= (3, 12) else 0,
    "LOAD_SUPER_ATTR": 2,
}
_EQUAL, _COMPARED_BELOW = (2, 3), 5 if _VERSION >= (3, 13) else 4 if _VERSION >= (3, 12) else 0  # flags of COMPARE_OP
_SUBSCRIPT = 26  # of BINARY_OP, from CPython 3.14 (Include/opcode.h: NB_SUBSCR)

_FILE = "_opcode_metadata.py" if _VERSION >= (3, 13) else "opcode.py"
_DEFINES = ("",) if _VERSION >= (3, 13) else ("def_op(", "name_op(", "jrel_op(", "jabs_op(")

_opnames = None


class Step:
    """`arg` and `argval` as in `dis.Instruction`, but that a jump's and a comparison's are numbers, and so are those of
    instructions that have none; `line`: of the source."""

    __slots__ = ("opname", "arg", "argval", "line")

    def __init__(self, opname, arg, argval, line):
        self.opname, self.arg, self.argval, self.line = opname, arg, argval, line

    @property
    def subscripts(self):
        """It reads by a key."""
        return self.opname == "BINARY_SUBSCR" or self.opname == "BINARY_OP" and self.arg == _SUBSCRIPT

    @property
    def equals(self):
        """It compares by `==` or `!=`."""
        return self.opname == "COMPARE_OP" and self.arg >> _COMPARED_BELOW in _EQUAL


def names():
    """Of all instructions, by number; empty where they cannot be had."""
    global _opnames
    if _opnames is None:
        _opnames = _from_file()
    if not _opnames:
        known = common.names("opcode").get("opname")
        if type(known) is list and len(known) >= 256 and _is_complete(known):
            _opnames = list(known)
    return _opnames


def of(code):
    """Each that does something, in order. Empty where their names cannot be had."""
    opnames = names()
    steps, extended, raw, lines = [], 0, code.co_code if opnames else b"", _Lines(code)
    for offset in range(0, len(raw), 2):
        opname, arg = opnames[raw[offset]], extended | raw[offset + 1]
        extended = arg << 8 if opname == _EXTENDED else 0
        if opname == _EXTENDED or opname in _NOTHING:
            continue
        try:
            argval = value(code, opname, arg)
        except IndexError:  # of a code object that somebody has made by hand
            argval = arg
        steps.append(Step(opname, arg, argval, lines.at(offset)))
    return steps


def value(code, opname, arg):
    """What the argument of an instruction stands for: a name, two names, a constant, or itself."""
    if opname in _CONSTANTS:
        return code.co_consts[arg]
    if "_FAST" in opname:
        if opname.count("_FAST") > 1:
            return _local(code, arg >> 4), _local(code, arg & 15)
        return _local(code, arg)
    if opname.endswith(_OF_CELLS):
        if _VERSION >= (3, 11):
            return code._varname_from_oparg(arg)
        return (code.co_cellvars + code.co_freevars)[arg]
    if opname.endswith(_NAMED):
        return code.co_names[arg >> _SHIFTS.get(opname, 0)]
    return arg


def _local(code, place):
    return code._varname_from_oparg(place) if _VERSION >= (3, 11) else code.co_varnames[place]


class _Lines:
    """The line of one offset after the other."""

    def __init__(self, code):
        self.number = code.co_firstlineno
        self.places = iter(_lines(code))
        self.next = next(self.places, None)

    def at(self, offset):
        while self.next is not None and self.next[0] <= offset:
            self.number = self.next[1]
            self.next = next(self.places, None)
        return self.number


def _lines(code):
    """(offset at which it begins, number) of each line."""
    if _VERSION >= (3, 10):
        return [(begin, number) for begin, _, number in code.co_lines() if number is not None]
    table, offset, number, found = code.co_lnotab, 0, code.co_firstlineno, []
    for place in range(0, len(table), 2):
        if table[place]:
            found.append((offset, number))
            offset += table[place]
        number += table[place + 1] - (256 if table[place + 1] >= 128 else 0)
    return [*found, (offset, number)]


def _from_file():
    """As it stands there, and no code of it run: `def_op('POP_TOP', 1)`, or `'POP_TOP': 31,` of `opmap`."""
    library = common.names("os").get("__file__")
    if type(library) is not str or not library.startswith("/"):
        return []
    try:
        text = _text(library.rpartition("/")[0] + "/" + _FILE)
    except (OSError, ValueError):  # its library lies in an archive
        return []
    opnames = ["<%d>" % number for number in range(256)]
    if _VERSION >= (3, 13):
        text = text.partition("\nopmap = {")[2].partition("}")[0]
    for line in text.split("\n"):
        begins, _, rest = line.partition("'")
        name, _, number = rest.partition("'")
        number = number.strip(" :,)").partition(")")[0]
        if begins.strip() in _DEFINES and number.isdigit() and int(number) < 256:
            opnames[int(number)] = name
    return opnames if _is_complete(opnames) else []


def _is_complete(opnames):
    return all([type(one) is str for one in opnames]) and {"COMPARE_OP", "STORE_SUBSCR"}.issubset(opnames)


def _text(path):
    parts, file = [], posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        while len(parts) < 16:
            parts.append(posix.read(file, 1 << 16))
            if not parts[-1]:
                break
    finally:
        posix.close(file)
    return b"".join(parts).decode()
