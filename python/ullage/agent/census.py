"""What holds the memory by which this Python grows? Containers that become longer, values that become larger, tensors
by shape, and autograd graphs that reach ever further back; each with the name by which the program reaches it.

Loaded when growth goes on, and taken a few times in a process, ever further apart: memory.py asks when one is due.
The surprise: a graph shows in no list. Its nodes are C++'s; only the tensor at its end is an object, often of 4 bytes.
They are numbered in the order in which they were made, so that the oldest one within reach tells how far back it goes.

No code of the program runs: what an object is comes from type(), its parts from the built-in types and the collector.
"""

import gc
import sys
import _ullage_kinds as types
from time import monotonic, thread_time

import _ullage_paths as paths

MORE = 16 << 20  # bytes, and share of what had grown: less is not worth another
MORE_SHARE = 0.1
APART_S = 2.0  # the first two; then half of the time that has passed, and 200 times what one costs
SHARE = 200
MOST_BLOCKS = 2_000_000  # of Python's memory: with more, the collector's list is left alone
LINE_S = 0.004
WALK_S, HOLDERS_S, GRAPHS_S = 0.02, 0.02, 0.01  # of the processor, for each part
LEAST_LONG = 8  # elements of a container worth a look
LONG_UNNAMED = 32
LEAST_MORE = 2
LARGE = 1 << 20
WORTH = 256 << 10
MOST_WEIGHED = 40
MOST_NAMED = 100
HOLDERS, GROUPS, GRAPHS = 6, 5, 3
WINDOWS, WINDOW = 3, 32  # elements next to each other often share a storage
PARTS = 40  # of an element
TENSORS = 1200  # that stand for all
NODES, REACH = 400, 6_000  # of a graph: looked into, and gone back along
HOOKS = 16  # of a module, more than before
OPERATIONS = 100  # by which a graph reaches further back
VIEW = 8  # times larger is what a view keeps
EXPLAINED = 0.3  # of the growth: with less, sites.py is asked where it is allocated
OF_MANY = 200_000  # objects: of more, every n-th stands for all
NO_ORDER = 1 << 62  # number of a node that stands for a parameter

unexplained = False  # by the last one

_taken = 0
_last = _at_first = 0  # what had grown at the last one, and at the first
_next = 0.0
_began = monotonic()
# What was seen first, and what had grown by then: of containers by their id, and of what has a name.
_lengths = {}
_unnamed = {}
_sizes = {}
_reaches = {}
_groups = {}


def due(grown, now):
    """`grown`: private bytes more than at the first look."""
    global _last
    _last = min(_last, grown)
    return now >= _next and (_taken == 0 or grown - _last >= max(MORE, MORE_SHARE * _last))


def take(send, private, grown):
    """Takes a census and tells it."""
    global unexplained, _at_first, _taken, _last, _next, _lengths, _unnamed, _sizes, _reaches, _groups
    _taken += 1
    began = thread_time()
    look = _Look(sys.modules.get("torch"), grown)
    tensors = garbage = None
    with look.quiet():
        # First, because it counts references, and those of the lists below would be too many.
        if look.garbage.waits():
            garbage = look.garbage.count(look)
        spots = list(paths.walk(began + WALK_S))
        # Not before the walk: this list refers to the dicts of locals that the walk empties, where nobody else does.
        objects = look.objects() if sys.getallocatedblocks() <= MOST_BLOCKS else None
        look.hooks = paths.hooks(spots)
        large = {}
        for number, (value, _) in enumerate(spots):
            if type(value) in paths.CONTAINERS and len(value) >= LEAST_LONG:
                large[id(value)] = value, number
        unnamed = {}
        if objects is not None and len(objects) <= OF_MANY:
            kinds = paths.CONTAINERS
            long = [value for value in objects if type(value) in kinds and len(value) >= LONG_UNNAMED]
            unnamed = {id(value): (value, None) for value in long if id(value) not in large}
            del long
        for ours in (objects, look.shared, spots, _lengths, _unnamed, _sizes, _reaches, _groups):
            large.pop(id(ours), None)
            unnamed.pop(id(ours), None)
        names, until = {}, thread_time() + HOLDERS_S
        holders = _holders(look, large, unnamed, names, spots, until)
        holders += _values(look, names, spots, until)
        holders.sort(key=lambda one: -one["more_bytes"] - one["hidden_bytes"])
        reaches = {}
        graphs = _graphs(look, spots, reaches, thread_time() + GRAPHS_S)
        if objects is not None:
            tensors, groups = look.groups(objects)
            _groups = _groups or groups
            _unnamed = look.first(unnamed, _unnamed)
        _lengths, _sizes, _reaches = look.first(large, _lengths), names, reaches
    _at_first = grown if _taken == 1 else min(_at_first, grown)
    unexplained = _taken > 1 and not _explained(grown - _at_first, holders, graphs, tensors)
    took = thread_time() - began
    _last, now = grown, monotonic()
    _next = now + (max(APART_S, (now - _began) / 2, SHARE * took) if _taken > 1 else APART_S)
    message = {
        "kind": "census",
        "number": _taken,
        "private": private,
        "grown": grown,
        "objects": None if objects is None else len(objects),
        "collects": sys.modules["_ullage_hooks"].native.collects(),
        "collects_after": gc.get_threshold()[0],
        "garbage": garbage,
        "sees_saved": look.sees_saved,
        "holders": holders[:HOLDERS],
        "graphs": graphs,
        "tensors": tensors,
        "took_us": int(took * 1e6),
    }
    send(message)


def _explained(came, holders, graphs, tensors):
    """Names hold a good part of what came, or tensors are it, of which sites.py would see nothing."""
    held = sum([one["more_bytes"] + one["hidden_bytes"] for one in holders])
    held += sum([one["more_bytes"] for one in graphs])
    more = [one["bytes"] - (one["bytes_before"] or 0) for one in tensors["groups"]] if tensors else []
    return held + sum([size for size in more if size > 0]) >= EXPLAINED * came


def after_fork():
    """In a forked child: the censuses were another's."""
    global _taken, _last, _next, _began, _lengths, _unnamed, _sizes, _reaches, _groups
    _taken, _last, _next, _began = 0, 0, 0.0, monotonic()
    _lengths, _unnamed, _sizes, _reaches, _groups = {}, {}, {}, {}, {}


# --- containers and values that grow --------------------------------------------------------------------


def _holders(look, large, unnamed, names, spots, until):
    """Containers longer than when first seen, weighed; the first time those with a name. `names` gets lengths."""
    named = {}
    for key, (value, number) in sorted(large.items(), key=lambda one: -len(one[1][0]))[:MOST_NAMED]:
        name = _name(spots[number])
        # A new one under an old name: the program makes it anew each time.
        named[key] = _lengths.get(key) or _sizes.get(name)
        names[name] = look.base(len(value), named[key] or _sizes.get(name))
    candidates = []
    for some, bases in ((large, named), (unnamed, _unnamed)):
        for key, (value, number) in some.items():
            base = bases.get(key) or _lengths.get(key)
            if base is not None and len(value) - base[0] >= LEAST_MORE and look.grown > base[1]:
                candidates.append((value, number, base))
            elif base is None and number is not None and _taken == 1:
                candidates.append((value, number, (0, 0)))
    candidates.sort(key=lambda one: (one[1] is None, one[2][0] - len(one[0])))
    found = []
    for value, number, base in candidates[:MOST_WEIGHED]:
        if thread_time() > until:
            break
        if number is None and not look.complete(value):
            continue
        length, inside = len(value), look.into(value, type(value))
        more = (length - base[0]) / max(1, length)
        inside["more_bytes"] = int(inside["bytes"] * more)
        inside["hidden_bytes"] = int(inside["hidden_bytes"] * more)
        spot = None if number is None else spots[number]
        # A hook's own bytes are few; what it refers to lies elsewhere.
        hooks = _taken > 1 and type(value) is paths.OrderedDict and spot is not None and length - base[0] >= HOOKS
        hooks = hooks and paths.path(spot)[0].endswith("_hooks")
        if inside["more_bytes"] + inside["hidden_bytes"] < (WORTH if _taken > 1 else LARGE) and not hooks:
            continue
        bounded = type(value) is paths.deque and value.maxlen is not None
        inside.update(type=_kind(value, spot), length=length, bounded=bounded, of_bytes=look.grown - base[1])
        inside["before"] = base[0] if _taken > 1 else None
        found.append((inside, value, spot))
    found.sort(key=lambda one: -one[0]["more_bytes"] - one[0]["hidden_bytes"])
    for inside, value, spot in found[:HOLDERS]:
        inside.setdefault("name", "")
        if spot is not None:
            _say_where(look, inside, spot, until)
        elif thread_time() < until:
            inside["name"] = paths.backward(value, (id(large), id(unnamed), id(spots)), until)
    return [one[0] for one in found[:HOLDERS]]


def _values(look, names, spots, until):
    """Tensors, arrays and bytes under a name that are larger than before: the program makes them anew, longer."""
    found, count = [], 0
    for spot in spots:
        size = look.size(spot[0])
        if size < LARGE or count >= MOST_NAMED:
            continue
        count += 1
        name = _name(spot)
        base = _sizes.get(name)
        names[name] = look.base(size, base)
        if base is not None and size - base[0] >= WORTH and look.grown > base[1]:
            one = {"type": paths.type_name(type(spot[0])), "length": size, "before": base[0], "bytes": size}
            one.update(more_bytes=size - base[0], own_bytes=size, hidden_bytes=0, of_bytes=look.grown - base[1])
            one.update(graph=0.0, views=0.0, errors=0.0, element="", bounded=False)
            found.append((one, spot))
    found.sort(key=lambda one: -one[0]["more_bytes"])
    for one, spot in found[:HOLDERS]:
        _say_where(look, one, spot, until)
    return [one for one, _ in found[:HOLDERS]]


def _name(spot):
    name, root, _, _ = paths.path(spot)
    return "%s in %s" % (name, root.code.co_name if root.code is not None else "")


def _kind(value, spot):
    if spot is not None and type(spot[1]) is tuple and type(spot[1][0]) is paths.CACHE:
        return "lru_cache"
    return paths.type_name(type(value))


def _say_where(look, one, spot, until):
    name, root, owner, functions = paths.path(spot)
    line, code = paths.line(spot, max(until, thread_time() + LINE_S))
    one.update(name=name, place=root.place, owner=owner, line=line, by_hook=code in look.hooks)
    if one["type"] == "lru_cache":
        function = paths.attributes_of(spot[1][0]).get("__wrapped__")
        code = getattr(function, "__code__", None)
        if code is not None:
            one["line"] = "%s:%d" % (code.co_filename.rpartition("/")[2], code.co_firstlineno)


# --- graphs ---------------------------------------------------------------------------------------------


def _graphs(look, spots, reaches, until):
    """Named tensors whose graph reaches further back than when the name was first seen, and from there on without a
    break: a step's own graph does not reach back to what was made before the last census."""
    found = []
    for spot in spots:
        if type(spot[0]) not in look.tensor_types or type(spot[1]) is tuple and type(spot[1][0]) in paths.LISTS:
            continue
        node = look.grad_fn(spot[0])
        if node is None or len(reaches) >= MOST_NAMED or thread_time() > until:
            continue
        name, (oldest, newest, whole) = _name(spot), look.reach(node)
        reach = max(0, newest - oldest)
        base = _reaches.get(name)
        if base is None or reach < base[0] or look.grown < base[1]:
            reaches[name] = reach, look.grown, newest, False
            continue
        # Of a graph too long to be gone along to its end, what was known before still holds.
        held = oldest <= base[2] or not whole and base[3]
        reaches[name] = base[:3] + (held,)
        if not held or reach < base[0] + OPERATIONS or look.grown <= base[1]:
            continue
        one = {"operations": reach, "before": base[0], "of_bytes": look.grown - base[1], "type": "Tensor"}
        found.append((one, node, spot))
    found.sort(key=lambda one: one[0]["before"] - one[0]["operations"])
    for one, node, spot in found[:GRAPHS]:
        one["more_bytes"] = int(look.saved(node) * (one["operations"] - one["before"]))
        _say_where(look, one, spot, until)
    return [one for one, _, _ in found[:GRAPHS]]


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class _Look:
    """What torch's and numpy's objects hold, asked of their own types only."""

    def __init__(self, torch, grown):
        self.torch = torch
        self.grown = grown
        self.shared, self.shared_number = (), 0
        self.hooks = ()  # code of functions that models call
        self.fields = {}  # type of a node -> names of what it saved
        tensor = getattr(torch, "Tensor", None)
        parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
        self.tensor_types = frozenset(kind for kind in (tensor, parameter) if kind is not None)
        self.parameter = parameter
        self.function = getattr(getattr(torch, "_C", None), "_FunctionBase", None)
        self.array = getattr(sys.modules.get("numpy"), "ndarray", None)
        saved = getattr(getattr(getattr(torch, "_C", None), "_autograd", None), "SavedTensor", None)
        self.sees_saved = hasattr(saved, "unpack_hook")
        hooks = sys.modules["_ullage_hooks"]
        self.weigh = hooks.weigher().weigh
        self.garbage = hooks.load("garbage")
        self.complete = hooks.load("slots").complete

    def base(self, figure, before):
        """What a figure is compared with from now on: with what it was at first, unless it has fallen below that, or
        the process has."""
        kept = before is not None and before[0] <= figure and before[1] <= self.grown
        return before if kept else (figure, self.grown)

    def first(self, containers, before):
        return {key: self.base(len(value), before.get(key)) for key, (value, _) in containers.items()}

    def objects(self):
        """Those of this process; tensors in pages that it shares with another are counted, and some looked at."""
        found = sys.modules["_ullage_hooks"].objects(tuple(self.tensor_types), TENSORS // 2)
        if found is None:
            return None
        own, self.shared, self.shared_number, _ = found
        return own

    def quiet(self):
        """Without functions of the program's that stand around torch's."""
        around = getattr(getattr(self.torch, "_C", None), "DisableTorchFunction", None)
        return around() if around is not None else _Nothing()

    def grad_fn(self, tensor):
        try:
            return tensor.grad_fn
        except Exception:
            return None

    def storage(self, tensor):
        """(place, bytes) of private memory of the CPU."""
        try:
            if tensor.device.type != "cpu" or tensor.is_shared():
                return 0, 0
            storage = tensor.untyped_storage()
            return storage.data_ptr(), storage.nbytes()
        except Exception:
            return 0, 0

    def base_of(self, array):
        """(place, bytes) of what an array's elements lie in; 0 where that is a file's or another's."""
        base = array
        while True:
            under = self.array.base.__get__(base)
            if under is None:
                return id(base), self.array.nbytes.__get__(base)
            if type(under) is self.array:
                base = under
            elif type(under) in (bytes, bytearray):
                return id(under), len(under)
            elif type(under) in self.tensor_types:
                return self.storage(under)
            else:
                return 0, 0

    def size(self, value):
        kind = type(value)
        if kind in self.tensor_types:
            return self.storage(value)[1]
        if kind is self.array:
            return self.base_of(value)[1]
        return len(value) if kind in (bytes, bytearray) else 0

    def into(self, container, kind):
        """What a container's elements hold; some of them stand for all."""
        length = len(container)
        found = {"bytes": 0, "own_bytes": 0, "hidden_bytes": 0, "graph": 0.0, "views": 0.0, "errors": 0.0}
        labels, keys, nodes = {}, {}, []
        looked = distinct = graphs = views = errors = 0
        own = 0.0
        windows = _windows(container, kind)
        for window in windows:
            here, share = set(), length / len(windows)
            for element in window:
                key, size, shown, node, label = self._element(element)
                looked += 1
                labels[label] = labels.get(label, 0) + 1
                own += shown
                here.add(key if key else ("", looked))
                keys[key if key else ("", looked)] = size
                if node is not None:
                    graphs += 1
                    nodes.append(node)
                errors += issubclass(type(element), BaseException)
                views += size >= VIEW * shown and size - shown >= 4096
            # Of elements in a row that share, the first and last run are cut off.
            if len(window) > 1:
                distinct += 1 + (len(here) - 1) * (share - 1) / (len(window) - 1)
            else:
                distinct += len(here) * share
        if not looked:
            return dict(found, element="")
        distinct = min(distinct, length) if len(keys) > 1 else 1
        kept = sum(keys.values()) / len(keys) * distinct
        nodes = nodes[:: max(1, len(nodes) // 3)][:3]
        each = sum([self.saved_by(node) for node in nodes]) / max(1, len(nodes))
        return {
            "bytes": int(kept) + kind.__sizeof__(container),
            "own_bytes": int(own * length / looked),
            "hidden_bytes": int(each * graphs * length / looked),
            "graph": graphs / looked,
            "views": views / looked,
            "errors": errors / looked,
            "element": max(labels, key=labels.get),
        }

    def _element(self, element):
        """(what it shares with others, bytes kept, bytes shown, graph, what it is)"""
        kind = type(element)
        if kind in self.tensor_types or kind is self.array:
            return self._data(element) + (self.label(element),)
        if kind in (str, bytes, bytearray, int, float, complex, bool) or not self.complete(element):
            return None, kind.__sizeof__(element), kind.__sizeof__(element), None, paths.type_name(kind)
        error = issubclass(kind, BaseException)
        todo, seen, best, node, shown, frames = [element], set(), None, None, 0, 0
        while todo and len(seen) < PARTS:
            part = todo.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if type(part) in self.tensor_types or type(part) is self.array:
                data = self._data(part)
                node = node or data[3]
                shown += data[2]
                if best is None or data[1] > best[1]:
                    best = data + (part,)
                frames += data[1] if error else 0
            elif error and type(part) in (types.TracebackType, types.FrameType):
                todo.extend([one for one in gc.get_referents(part) if not paths._is_globals(one)])
            elif not issubclass(type(part), type):
                todo.extend(paths.parts(part))
        size = sum(self.weigh(element, 100).values())
        label = paths.type_name(kind)
        if best is not None and not error:
            label += " with " + self.label(best[4])
        if error:
            return None, size + frames, size + frames, node, label
        # What shares a buffer with its neighbour is told by the largest one.
        return (best[0] if best else None), max(size, best[1] if best else 0), max(size, shown), node, label

    def _data(self, value):
        if type(value) is self.array:
            place, size = self.base_of(value)
            return place, size, min(size, self.array.nbytes.__get__(value)), None
        place, size = self.storage(value)
        try:
            shown = min(size, value.numel() * value.element_size())
        except Exception:
            shown = size
        return place, size, shown, self.grad_fn(value)

    def label(self, value):
        name = "ndarray" if type(value) is self.array else "Tensor"
        try:
            return "%s %s %s" % (name, list(value.shape), str(value.dtype).replace("torch.", ""))
        except Exception:
            return name

    # Graphs.

    def _next(self, node):
        try:
            if self.function is not None and issubclass(type(node), self.function):
                following = self.function.next_functions.__get__(node)
            else:
                following = node.next_functions
            return [one[0] for one in following if one[0] is not None]
        except Exception:
            return []

    def _number(self, node):
        try:
            return node._sequence_nr()
        except Exception:
            return NO_ORDER

    def reach(self, node):
        """(oldest operation that it leads to, this one, whether that is its end), always going to the oldest next."""
        newest = oldest = self._number(node)
        for _ in range(REACH):
            older = [(self._number(one), one) for one in self._next(node)]
            older = [one for one in older if one[0] < NO_ORDER]
            if not older:
                return oldest, newest, True
            oldest, node = min(older, key=lambda one: one[0])
        return oldest, newest, False

    def _saved(self, node):
        """(bytes that the nodes next to this one saved, operations that these are)"""
        todo, seen, places, low, high = [node], set(), {}, NO_ORDER, 0
        while todo and len(seen) < NODES:
            one = todo.pop(0)
            if one in seen:
                continue
            seen.add(one)
            number = self._number(one)
            if number < NO_ORDER:
                low, high = min(low, number), max(high, number)
            for name in self._fields(type(one)):
                self._place_saved(one, name, places)
            todo.extend(self._next(one))
        return sum(places.values()), max(1, high - low + 1)

    def _fields(self, kind):
        """What it saved, by name; the program's own kinds of node have one for all, and code of the program."""
        if kind not in self.fields:
            own = self.function is not None and issubclass(kind, self.function)
            names = [getattr(self.function, "_raw_saved_tensors", None)] if own else dir(kind)
            self.fields[kind] = names if own else [name for name in names if name.startswith("_raw_saved_")]
        return self.fields[kind]

    def _place_saved(self, node, name, places):
        try:
            saved = getattr(node, name) if type(name) is str else name.__get__(node)
            for one in saved if type(saved) in (list, tuple) else (saved,):
                # Of what a hook has packed nothing is known. Newer torch tells what is saved and runs no hook.
                if one is None or getattr(one, "unpack_hook", one) is not None:
                    continue
                tensor = one.data
                if type(tensor) in self.tensor_types and type(tensor) is not self.parameter:
                    place, size = self.storage(tensor)
                    if place and not (tensor.requires_grad and tensor.is_leaf):
                        places[place] = size
        except Exception:  # freed by a backward pass
            pass

    def saved_by(self, node):
        return self._saved(node)[0]

    def saved(self, node):
        """Bytes for each operation."""
        size, operations = self._saved(node)
        return size / operations

    def groups(self, objects):
        """Tensors by shape, type and graph: those that grew most, and all together."""
        step = len(objects) // OF_MANY + 1
        found = [one for one in objects[::step] if type(one) in self.tensor_types]
        every = len(found) // TENSORS + 1
        places, groups = set(), {}
        count = len(found) * step + self.shared_number
        total = {"count": count, "bytes": 0, "with_graph": 0, "views": 0, "kept_by_views": 0}
        scaled = [(one, step * every) for one in found[::every]]
        scaled += [(one, self.shared_number / len(self.shared)) for one in self.shared]
        for one, scale in scaled:
            place, size, shown, node = self._data(one)
            new = place and place not in places
            places.add(place)
            total["with_graph"] += scale * (node is not None)
            if place and size >= VIEW * shown and size - shown >= 4096:
                total["views"] += scale
                total["kept_by_views"] += scale * (size if new else 0)
            key = self.label(one)[7:] + (" with graph" if node is not None else "")
            group = groups.setdefault(key, [0, 0])
            group[0] += scale
            group[1] += scale * (size if new else 0)
            total["bytes"] += scale * (size if new else 0)
        named = []
        for key, (count, size) in groups.items():
            count, size = round(count), round(size)
            before = _groups.get(key, (0, 0)) if _groups else (None, None)
            named.append({"tensors": key, "count": count, "bytes": size})
            named[-1].update(count_before=before[0], bytes_before=before[1])
        named.sort(key=lambda one: (one["bytes_before"] or 0) - one["bytes"])
        total["groups"] = named[:GROUPS]
        for name in ("bytes", "with_graph", "views", "kept_by_views"):
            total[name] = round(total[name])
        return total, groups


def _windows(container, kind):
    """Elements in a row, at its beginning, in its middle and at its end; of what has no order, some."""
    length = len(container)
    try:
        if kind in paths.LISTS or kind is paths.deque:
            starts = sorted({number * max(0, length - WINDOW) // (WINDOWS - 1) for number in range(WINDOWS)})
            return [[container[place] for place in range(start, min(length, start + WINDOW))] for start in starts]
        return [paths.some(container, kind, WINDOWS * WINDOW)]
    except (IndexError, RuntimeError):  # another thread changed it
        return []
