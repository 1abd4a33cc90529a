"""What does native code hold, to call it or to call something with it? Functions that are registered to run at the end,
with their arguments; hooks of a graph, which lie in C++; callbacks of a library.

How it is found says python/agent, held.rs. The surprise: what stands on a running function's stack is held by C as
well, and so is what a greenlet has for locals.
"""

import gc
import sys
from _weakref import ref

import _ullage_common as common
import _ullage_from_below as from_below
import _ullage_kinds as types
import _ullage_paths as paths
from _ullage_common import thread_time

SHARE = 200_000  # objects that are gone through in one hold of the interpreter
HOLD_NS = 40_000_000  # at most, each, where the processor is slow
FAR_BACK, MOST = 1 << 15, 8000  # objects that came last, and of them those of which it is asked
MOST_ROOTS = 2000
ALIKE = 2
HOOKS = 16  # more of them than before
WORTH = 256 << 10  # bytes
CALLED, FEW_CALLED = 2, 8  # functions whose bound methods are looked into, and methods that stand for all
_FUNCTION = types.namespace(types.MethodType)["__func__"].__get__
_SELF = types.namespace(types.MethodType)["__self__"].__get__
# What they refer to cannot be changed, or is not in practice.
_FIXED = (
    tuple, frozenset, property, staticmethod, ref, types.FunctionType, types.BuiltinFunctionType,
    types.GetSetDescriptorType, types.MemberDescriptorType, type(str.upper), type(object.__init__),
)  # fmt: skip
_is_forked = False


def _after_fork():
    global _is_forked
    _is_forked = True


common.in_child.append(_after_fork)


class Callbacks(paths.Root):
    """In place of a name: what is called, or the types of what it would be called with."""

    __slots__ = ("count", "line", "element")

    def __init__(self, name, line, element):
        super().__init__(name, "", None, "")
        self.line, self.count, self.element = line, 0, element


def spots(number, seconds):
    """(object, Callbacks) of what native code holds, of the kinds of which there are several alike; None where that
    cannot be told. `number` of objects that the collector knows, none of them frozen."""
    until = thread_time() + seconds
    # Counts of references are kept by thread, and what greenlets refer to is in no list. What they lead to may lie in
    # pages that a forked process shares.
    if _is_forked or "greenlet" in sys.modules or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    partial = common.names("functools").get("partial")
    kinds = [kind for kind in (types.FunctionType, types.MethodType, partial) if kind is not None]
    dicts = dict, paths.OrderedDict
    some = common.native.may_be_held(gc.get_threshold(), FAR_BACK, tuple(kinds), dicts, _FIXED, MOST, HOLD_NS)
    atexit, shares = sys.modules.get("atexit"), number // SHARE + 1
    closed = (id(atexit),)  # up to CPython 3.9 it shows what is registered
    for share in range(shares):
        if some is None or thread_time() > until:
            return None
        some = common.native.less_referred(gc.get_threshold(), some, closed, _FIXED, share, shares, HOLD_NS)
    found, roots = [], {}
    held = common.native.held(gc.get_threshold(), some[: 16 * MOST_ROOTS], FAR_BACK) if some is not None else None
    if held is None:
        return None
    while held:
        one, parts = held.pop()
        called = _called(one, parts)
        if called is not None:
            root = roots.get(called) or roots.setdefault(called, Callbacks(*called))
            root.count += 1
            found += [(part, root) for part in parts or (one,) if id(type(part)) not in paths._PASSED_BY]
    # Elements of numpy's arrays of objects are held by C as well: tuples are arguments where so many are registered.
    count = common.names("atexit").get("_ncallbacks")
    registered = count() if type(count) is types.BuiltinFunctionType else 0
    return [one for one in found if ALIKE <= one[1].count <= (sys.maxsize if one[1].element else registered)]


def _called(one, parts):
    """(what is called, its line, "callback", or "hook" of a graph); of what it would be called with its types, and no
    more. None where it is neither."""
    element = "callback"
    if one is None:
        names = [types.type_name(type(part)).rpartition(".")[2] for part in parts]
        return ("(%s)" % ", ".join(names), "", "") if any([gc.is_tracked(part) for part in parts]) else None
    if id(type(one)) in paths.OF_DICTS:  # what a graph in C++ calls, by the number of each
        if len(one) != 1:
            return None
        one, element = next(iter(dict.values(one)), None), "hook"
    partial = common.names("functools").get("partial")
    for _ in range(FEW_CALLED):  # one may be made to call itself
        one = one.func if partial is not None and type(one) is partial else one
    if type(one) is types.MethodType:
        thread = common.names("threading").get("Thread")
        # What a thread runs is held by C as long as it runs: threads have causes of their own.
        one = None if thread is not None and issubclass(type(_SELF(one)), thread) else _FUNCTION(one)
    if type(one) is not types.FunctionType or type(one.__qualname__) is not str:
        return None
    code = one.__code__
    return "%s()" % one.__qualname__, "%s:%d" % (code.co_filename.rpartition("/")[2], code.co_firstlineno), element


class Methods:
    """Bound methods of one function, ever more of them, to which nothing refers that the collector sees."""

    def __init__(self, before, base, grown):
        """`before`: id of a function -> how many methods of it were bound; `base`: of such a figure and the one before,
        what it is compared with from now on."""
        self._before, self._base, self._grown = before, base, grown
        self.counts = {}

    def held(self, heap, callables, each):
        groups = {}
        for one in callables:
            groups.setdefault(id(_FUNCTION(one)), []).append(one)
        found = []
        for key, some in groups.items():
            count = int(len(some) * each)
            base = self.counts[key] = self._base(count, self._before.get(key))
            if count - base[0] >= HOOKS and self._grown > base[1]:
                found.append((count, base, some))
        found.sort(key=lambda one: one[1][0] - one[0])
        holders = []
        for count, base, some in found[:CALLED]:
            few = some[:: len(some) // FEW_CALLED + 1]
            ours = (id(callables), id(some), id(few))
            refer = [one for one in from_below.finished(gc.get_referrers(*few)) if id(one) not in ours]
            if any([type(one) is not types.FrameType and one is not sys.modules.get("atexit") for one in refer]):
                continue
            called = _called(some[0], ())
            if called is None:
                continue
            inside = heap.into(some, list)
            more = each * (count - base[0]) / count
            if inside["bytes"] * more < WORTH:
                continue
            name, line, _ = called
            inside.update(type="callbacks", name=name, place="", owner="", line=line, by_hook=True, length=count)
            inside.update(before=base[0], bounded=False, of_bytes=self._grown - base[1])
            inside.update(more_bytes=int(inside["bytes"] * more), hidden_bytes=int(inside["hidden_bytes"] * more))
            inside["bytes"] = int(inside["bytes"] * each)
            holders.append(inside)
        return holders
