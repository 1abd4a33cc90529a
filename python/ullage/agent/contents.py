"""What do objects of the program hold: elements of containers, torch's tensors and their graphs, numpy's arrays?

Asked of their own types only, so that no code of the program runs. The surprise: a graph shows in no list. Its nodes
are C++'s; only the tensor at its end is an object, often of 4 bytes. They are numbered in the order in which they were
made, so that the oldest one within reach tells how far back it goes.
"""

import gc
import sys
from _collections import deque
from itertools import islice

import _ullage_caches as caches
import _ullage_common as common
import _ullage_kinds as types
import _ullage_libraries as libraries
import _ullage_paths as paths
import _ullage_slots as slots
import _ullage_tensors as tensors
import _ullage_weigh as weigh
from _ullage_common import thread_time

MOST_FILLED = 10_000  # elements of an element that are counted by whether something was put there
WINDOWS, WINDOW, ALONE = 3, 32, 12  # elements next to each other often share a storage; where none has one, fewer do
PARTS, OF_ERRORS, STEPS = 40, 60, 100  # of an element, of what exceptions in it lead to, and of what it weighs
FRAMES = 24  # of its exceptions
MOST_FRAMES, CHAINED = 1000, 4  # of a traceback that are passed; times as many parts of what is chained
TABLE = 4  # parts, as which what asks a library for its memory counts
TENSORS = 1200  # that stand for all
CHANCE = 2  # standard errors, by which those of a kind must be more than before: which are chosen is chance
GROUPS = 5
UNSEEN = 3  # of a kind that are passed by one time in twenty
NODES = 400  # of a graph that are looked into
TIMES = 4  # operations that saved the same
NODE_BYTES = 500  # of one that has saved nothing: `t = t + p` grows a graph by 576 in torch 2.13
VIEW = 8  # times larger is what a view keeps
MOST_TRACEBACKS, FEW_TRACEBACKS = 100_000, 8  # of an exception: those counted, and those that stand for all
LONG, MOST_LONG = 32, 8_000  # elements of a container without a name, and how many such, the longest
PENDING = " (pending)"
_LEAVES = types.ids(str, bytes, bytearray, int, float, complex, bool)
_SMALL = types.ids(type(None), int, float, complex, bool, types.CodeType, types.ModuleType, types.BuiltinFunctionType)
_SELF = types.namespace(types.MethodType)["__self__"].__get__
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__
_NEXT, _FRAME, _LINE = (
    types.namespace(types.TracebackType)[name].__get__ for name in ("tb_next", "tb_frame", "tb_lineno")
)
NO_ORDER = 1 << 62  # number of a node that stands for a parameter


class _Found:
    """Of what lies in an element: the largest tensor or array, a graph, place -> bytes, and how much of it is reached
    by an exception, lies in frames in small pieces, is hidden behind views, and shows."""

    def __init__(self):
        self.best, self.node, self.storages = None, None, {}
        self.by_error = self.in_frames = self.hidden = self.shown = 0


def _weight(value, most, seen):
    """Of what is called, what it would be called with; of a module, what it holds."""
    if type(value) is types.MethodType:
        value = _SELF(value)
    elif type(value) is types.FunctionType:
        return sum([sum(weigh.weigh(one, most // 4, seen).values()) for one in paths.parts(value)])
    return sum(weigh.weigh(value, most, seen, names=paths.names_of(value)).values())


def _frames_of(traceback):
    """Those where it began and those where it failed, if they are many."""
    frames = []
    while traceback is not None and len(frames) < MOST_FRAMES:
        frames.append(_FRAME(traceback))
        traceback = _NEXT(traceback)
    return frames if len(frames) <= FRAMES else frames[: FRAMES // 2] + frames[-FRAMES // 2 :]


def _is_function_of(frame, part):
    """What runs in a frame is there without it."""
    return type(part) is types.FunctionType and type(frame) is types.FrameType and part.__code__ is frame.f_code


def _is_free(element):
    return element is None or type(element) is list and not element


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Contents:
    def __init__(self):
        torch = common.names("torch._C")
        self.shared, self.shared_number, self.own_number = (), 0, 0
        self.fields = {}  # id of a node's type -> (names of what it saved, the type)
        self.tensor_types = tensors.kinds()
        self._of_tensors = types.ids(*self.tensor_types)
        self.parameter = common.names("torch.nn").get("Parameter")
        self.function, self._quiet = torch.get("_FunctionBase"), torch.get("DisableTorchFunction")
        self.array = common.names("numpy").get("ndarray")
        saved = getattr(torch.get("_autograd"), "SavedTensor", None)
        self.sees_saved = hasattr(saved, "unpack_hook")
        self._frames = None

    def standing(self, apart, most_apart):
        """(tensors, long containers, how many objects there are, some of the types `apart`, how many there are): those
        of this process. Of very many tensors, and of those in pages that it shares with another, some stand for all."""
        longest = paths.CONTAINERS, LONG, MOST_LONG
        found = common.standing(self.tensor_types, 8 * TENSORS, TENSORS // 2, *longest, apart, most_apart)
        if found is None:
            return None
        own, self.own_number, self.shared, self.shared_number, long, number, some, number_apart = found
        return own, long, number, some, number_apart

    def elements(self, container, most=0):
        """(how many elements of a list or array were put there: neither None nor an empty list; some of them, evenly
        spread). None where that is not counted."""
        kind = type(container)
        if kind is list:
            return common.native.filled(container, most)
        if self.is_of_objects(container):
            facts = self.array.__dict__["__array_interface__"].__get__(container)
            if facts["strides"] is None:
                return common.native.filled(container, most, facts["data"][0], container.size)
        return None

    def is_of_objects(self, value):
        return self.array is not None and type(value) is self.array and value.dtype.kind == "O"

    def is_tensor(self, value):
        return id(type(value)) in self._of_tensors

    def _is_data(self, value):
        return self.is_tensor(value) or type(value) is self.array

    def length(self, container):
        if self.is_of_c(type(container)):
            return common.native.referents(container, 0)[0]
        found = self.elements(container)
        return len(container) if found is None else found[0]

    def nested(self, container):
        """How many elements those containers have that are its own elements; some of them stand for all."""
        length, windows = self._windows(container, type(container))
        looked, inner = 0, 0
        for window in windows:
            looked += len(window)
            for _, element in window:
                if type(element) is list and len(element) <= MOST_FILLED:
                    inner += common.native.filled(element, 0)[0]
                elif id(type(element)) in paths.OF_CONTAINERS:
                    inner += len(element)
        return inner * length // max(1, looked)

    def quiet(self):
        """Without functions of the program's that stand around torch's."""
        return self._quiet() if self._quiet is not None else _Nothing()

    def grad_fn(self, tensor):
        try:
            return tensor.grad_fn
        except Exception:
            return None

    def base_of(self, array):
        """(place, bytes) of what an array's elements lie in; 0 where that is a file's or another's."""
        base = array
        while True:
            under = weigh.lent_by(self.array.base.__get__(base))
            if under is None:
                return id(base), self.array.nbytes.__get__(base)
            if type(under) is self.array:
                base = under
            elif type(under) is bytes or type(under) is bytearray:
                return id(under), len(under)
            elif self.is_tensor(under):
                return tensors.storage_of(under, shared=True)
            else:
                return 0, 0

    def retained_by(self, error):
        """(how many tracebacks hang on an exception, bytes in the frames that they hold): it gets another one each time
        that it is raised. Some of them stand for all."""
        tracebacks, traceback = [], _TRACEBACK(error)
        while traceback is not None and len(tracebacks) < MOST_TRACEBACKS:
            tracebacks.append(traceback)
            traceback = _NEXT(traceback)
        length, size = len(tracebacks), 0
        few = min(length, FEW_TRACEBACKS)
        for number in range(few):
            parts = gc.get_referents(_FRAME(tracebacks[number * length // few]))
            size += sum([self._local(part)[1] for part in parts])
        return length, size * length // few if few else 0

    def in_frames(self, tracebacks, count):
        """(bytes in the frames of so many tracebacks, of which some are given; the function, and the line, that most of
        them passed). What several frames refer to counts once."""
        places, lines, frames = {}, {}, set()
        for one in tracebacks:
            frame = _FRAME(one)
            if id(frame) in frames or id(frame) in self._running():
                continue
            frames.add(id(frame))
            code, number = frame.f_code, _LINE(one)
            file = code.co_filename.rpartition("/")[2]
            known = lines.setdefault((file, number), [0, "%s(), %s:%d" % (code.co_name, file, number)])
            for part in gc.get_referents(frame):
                place, size = self._local(part)
                known[0] += size * (place not in places)
                places[place] = size, places[place][1] + 1 if place in places else 1
        if not frames:
            return 0, "", ""
        alone = sum([size for size, times in places.values() if times == 1])
        shared = sum([size for size, times in places.values() if times > 1])
        most = max(lines, key=lambda line: lines[line][0])
        return shared + alone * count // len(tracebacks), lines[most][1], "%s:%d" % most

    def _local(self, part):
        """(place, bytes) of what a function's variable refers to: an instance is more than the function's."""
        if self._is_data(part):
            return self._data(part)[:2]
        if type(part) is bytes or type(part) is bytearray:
            return id(part), len(part)
        if id(type(part)) in paths.OF_CONTAINERS and not paths.is_globals(part):
            return id(part), sum(weigh.weigh(part, 50).values())
        return 0, 0

    def size(self, value):
        kind = type(value)
        if kind is paths.Array:
            return value.size
        if self.is_tensor(value):
            return tensors.storage_of(value, shared=True)[1]
        if kind is self.array:
            return self.base_of(value)[1]
        return len(value) if kind is bytes or kind is bytearray else 0

    def into(self, container, kind, cache=None, chained=False):
        """What a container's elements hold; some of them stand for all. `cache`: the one of `lru_cache` whose it is.
        `chained`: they lead to each other, and what several lead to counts once."""
        length, windows = self._windows(container, kind)
        keyed, chained = id(kind) in paths.OF_DICTS, chained and id(kind) in paths.OF_CONTAINERS
        if cache is not None and caches.bound_of(cache) is not None:
            windows = [caches.some(container, cache, WINDOWS * WINDOW)]
        found = {"bytes": 0, "own_bytes": 0, "hidden_bytes": 0, "graph": 0.0, "views": 0.0, "errors": 0.0}
        labels, nodes, places, rest, lengths, placed = {}, [], {}, [], [], False
        looked = graphs = views = errors = 0
        own = 0.0
        seen, met = self._common(windows, container), {id(container)} if chained else None
        for number, window in enumerate(windows):
            unplaced = count = 0
            for key, element in weigh.in_runs(window, ALONE, number, len(windows)):
                size, shown, node, label, storages, error = self._element(element, key, container, seen, met)
                looked, count = looked + 1, count + 1
                labels[label] = labels.get(label, 0) + 1
                own += shown
                unplaced += max(0, size - sum(storages.values()))
                placed |= bool(storages) or node is not None
                for place, kept in storages.items():
                    before = places.get(place)
                    if before is None:
                        places[place] = kept, number, 1
                    else:
                        places[place] = kept, number if before[1] == number else weigh.EVERYWHERE, before[2] + 1
                if node is not None:
                    graphs += 1
                    nodes.append(node)
                errors += error
                views += size >= VIEW * shown and size - shown >= 4096
                if not placed and (count == ALONE and len(labels) == 1 or count == 2 * ALONE):
                    break
            rest, lengths = [*rest, unplaced], [*lengths, count]
        if not looked:
            return dict(found, element="")
        nodes = nodes[:: max(1, len(nodes) // 3)][:3]
        each = sum([self.saved_by(node) for node in nodes]) / max(1, len(nodes))
        kept = weigh.scaled(lengths, rest, places.values(), length)
        if chained:  # each element that any of them leads to is one of those that stand for all
            looked = max(looked, len(met.intersection(map(id, dict.values(container) if keyed else container))))
            kept = (sum(rest) + sum([size for size, _, _ in places.values()])) * length / looked
        return {
            "bytes": int(kept) + (0 if self.is_of_c(kind) else kind.__sizeof__(container)),
            "own_bytes": int(own * length / looked),
            "hidden_bytes": int(each * graphs * length / looked),
            "graph": graphs / looked,
            "views": views / looked,
            "errors": errors / looked,
            "element": max(labels, key=labels.get),
        }

    def _common(self, windows, container):
        """Ids of what two elements lead to, such as their parent with all that it holds: it weighs nothing, or else
        each element would weigh as much as the whole."""
        common, before = {id(container)}, None
        ends = [window[place][1] for window in windows for place in sorted({0, len(window) - 1}) if window]
        for element in ends:
            seen = {id(container)}
            if id(type(element)) not in _LEAVES:
                _weight(element, STEPS, seen)
            if before is not None:
                common |= before & seen
            before = seen
        return common

    def is_of_c(self, kind):  # neither a container of Python's nor an array
        return id(kind) not in paths.OF_CONTAINERS and kind is not self.array

    def _windows(self, container, kind):
        """(elements that are there, some of them, each behind its key: in a row, at the beginning, in the middle and
        at the end; of what has no order, or is filled here and there, some)"""
        if self.is_of_c(kind):
            length, some = common.native.referents(container, WINDOWS * WINDOW)
            return length, [[(None, one) for one in some]]
        length, most = container.size if kind is self.array else len(container), WINDOWS * WINDOW
        counted = self.elements(container, most)
        if counted is not None and (2 * counted[0] < length or kind is self.array):
            return counted[0], [[(None, one) for one in counted[1]]]
        try:
            if id(kind) in paths.OF_LISTS or kind is paths.deque:
                size = WINDOW if length > most else length
                starts = sorted({number * (length - size) // (WINDOWS - 1) for number in range(WINDOWS)})
                windows = [[(None, container[place]) for place in range(start, start + size)] for start in starts]
                if counted is None or counted[0] == length:
                    return length, windows
                there = [[one for one in window if not _is_free(one[1])] for window in windows]
                return counted[0], [some for some in there if some] or [[(None, one) for one in counted[1]]]
            if id(kind) in paths.OF_DICTS:
                items = dict.items(container)
                if length <= most:
                    return length, [list(items)]
                return length, [list(islice(items, most // 2)) + list(islice(reversed(items), most // 2))]
            return length, [[(None, one) for one in paths.some(container, kind, most)]]
        except (IndexError, RuntimeError):  # another thread changed it
            return length, []

    def _element(self, element, key, holder, seen, met):
        """(bytes kept, bytes shown, graph, what it is, place -> bytes of what it may share with others, whether most of
        it hangs on an exception)"""
        kind = type(element)
        if self._is_data(element):
            place, size, shown, node = self._data(element)
            return size, shown, node, self.label(element), {place: size} if place else {}, False
        more = 0 if key is None else _weight(key, 50, seen)
        keyed = key is not None and id(type(key)) not in _LEAVES
        if not keyed and id(kind) in _LEAVES or not slots.complete(element):
            size = kind.__sizeof__(element)
            return size + more, size + more, None, types.type_name(kind), {}, False
        weight = _weight(element, STEPS, seen) + more
        ends = [one for one in (paths.names_of(element) or element, key if keyed else None) if one is not None]
        found = self._inside(ends, seen, *(({id(holder)}, PARTS) if met is None else (met, CHAINED * PARTS)))
        label = types.type_name(kind) + (PENDING if types.waits(element, kind) else "")
        if found.best is not None and not issubclass(kind, BaseException):
            label += " with " + self.label(found.best)
        stored = sum(found.storages.values())
        size = max(weight + found.in_frames, stored)
        error = issubclass(kind, BaseException) or found.by_error + found.in_frames > size / 2
        return size, max(size - found.hidden, found.shown), found.node, label, found.storages, error

    def _inside(self, ends, weighed, seen, most):
        """The storages that an element and its key lead to, nearest first, and those of an exception before others."""
        found = _Found()
        todo, by_errors, shown, largest = deque(ends), deque(), {}, 0
        count = of_errors = frames = 0
        while by_errors and of_errors < OF_ERRORS or todo and count < most:
            by_error = bool(by_errors) and of_errors < OF_ERRORS
            queue = by_errors if by_error else todo
            part = queue.popleft()
            kind = type(part)
            if id(part) in seen or id(kind) in _SMALL:
                continue
            seen.add(id(part))
            if id(kind) in _LEAVES:
                size = kind.__sizeof__(part)
                if size >= weigh.LARGE:
                    found.storages[id(part)] = shown[id(part)] = size
                    found.by_error += size * by_error
                continue
            if id(kind) in paths.OF_CONTAINERS and not len(part):
                continue
            is_of_error = kind is types.TracebackType or kind is types.FrameType
            count, of_errors = count + (not by_error), of_errors + (by_error and not is_of_error)
            if self._is_data(part):
                place, size, visible, node = self._data(part)
                found.node = found.node or node
                if size > largest:
                    largest, found.best = size, part
                if place:
                    found.by_error += size * (by_error and place not in found.storages)
                    found.storages[place] = size
                    shown[place] = shown.get(place, 0) + visible
                gradient = tensors.gradient_of(part)
                if gradient is not None:
                    queue.appendleft(gradient)  # as near as its parameter
            elif (behind := libraries.memory_of(part, kind)) is not None:
                places, visible = behind
                whole = sum(places.values())
                count, of_errors = count + TABLE * (not by_error), of_errors + TABLE * by_error
                for place, size in places.items():
                    found.by_error += size * (by_error and place not in shown)
                    found.storages[place] = size
                    shown[place] = shown.get(place, 0) + visible * size // whole
            elif kind is types.TracebackType:
                if frames < FRAMES:
                    queue.extendleft(_frames_of(part))  # the innermost first: there it failed
            elif kind is types.FrameType:
                frames += 1
                if frames <= FRAMES and id(part) not in self._running():
                    parts = [one for one in gc.get_referents(part) if not paths.is_globals(one)]
                    queue.extend([one for one in parts if not _is_function_of(part, one)])
                    # What is weighed in one step is not left behind what has to be gone into.
                    queue.extendleft([one for one in parts if self._is_data(one) or id(type(one)) in _LEAVES])
                    parts = [one for one in parts if type(one) is not types.FrameType and id(one) not in seen]
                    found.in_frames += sum([weigh.weigh(one, 20, weighed)["objects"] for one in parts])
            elif issubclass(kind, BaseException):
                by_errors.extend(paths.parts(part))
            elif not issubclass(kind, type):
                parts = list(paths.parts(part))
                # What hangs on an exception as well as elsewhere counts as the exception's.
                todo.extendleft([one for one in parts if not by_error and issubclass(type(one), BaseException)])
                queue.extend(parts)
        found.hidden = sum([max(0, size - shown.get(place, 0)) for place, size in found.storages.items()])
        found.shown = sum(shown.values())
        return found

    def _running(self):
        """Frames that run, and keep their locals by themselves."""
        if self._frames is None:
            self._frames = {id(frame) for frame in paths.frames()}
        return self._frames

    def _data(self, value):
        if type(value) is self.array:
            place, size = self.base_of(value)
            return place, size, min(size, self.array.nbytes.__get__(value)), None
        place, size = tensors.storage_of(value, shared=True)
        return place, size, tensors.shown_of(value, size), self.grad_fn(value)

    def label(self, value):
        name = "ndarray" if type(value) is self.array else "Tensor"
        try:
            return "%s %s %s" % (name, list(value.shape), str(value.dtype).replace("torch.", ""))
        except Exception:
            return name

    # --- graphs -----------------------------------------------------------------------------------------

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

    def reach(self, node, until):
        """(oldest operation that it leads to, this one, whether its end was come to): best-first search, the oldest
        next, since a graph that becomes longer also leads to what each step began with."""
        heap = sys.modules.get("_heapq")
        newest = oldest = self._number(node)
        if heap is None:
            return oldest, newest, False
        todo, seen, count = [(newest, 0, node)], {node}, 0
        while todo:
            oldest, node = min(oldest, todo[0][0]), heap.heappop(todo)[2]
            count += 1
            if count % 64 == 0 and thread_time() > until:
                return oldest, newest, False
            for one in self._next(node):
                number = self._number(one)
                if number < NO_ORDER and one not in seen:
                    seen.add(one)
                    heap.heappush(todo, (number, len(seen), one))
        return oldest, newest, True

    def _saved(self, node):
        """(what the nodes before this one saved: place -> (bytes, how often, by the newest of which number, by the
        oldest), how many these are, operations meanwhile), the newest next: these are all that is left of those
        operations. Nearest first would see a little of very many steps."""
        seen, places, low, high = {node}, {}, NO_ORDER, 0
        heap = sys.modules.get("_heapq")
        todo, count = [(-self._number(node), 0, node)], 0
        while todo and count < NODES and heap is not None:
            number, _, one = heap.heappop(todo)
            count += 1
            low, high = min(low, -number), max(high, -number)
            stored = {}
            for name in self._fields(type(one)):
                self._place_saved(one, name, stored)
            for place, size in stored.items():
                _, times, newest, _ = places.get(place, (0, 0, -number, 0))
                places[place] = size, times + 1, newest, -number
            for other in self._next(one):
                number = self._number(other)
                if number < NO_ORDER and other not in seen:  # those of parameters belong to all graphs
                    seen.add(other)
                    heap.heappush(todo, (-number, len(seen), other))
        return places, count, max(1, high - low + 1)

    def _fields(self, kind):
        """What it saved, by name; the program's own kinds of node have one for all, and code of the program."""
        if id(kind) not in self.fields:
            own = self.function is not None and issubclass(kind, self.function)
            names = [getattr(self.function, "_raw_saved_tensors", None)] if own else dir(kind)
            names = names if own else [name for name in names if name.startswith("_raw_saved_")]
            self.fields[id(kind)] = names, kind
        return self.fields[id(kind)][0]

    def _place_saved(self, node, name, places):
        try:
            saved = getattr(node, name) if type(name) is str else name.__get__(node)
            for one in saved if type(saved) is list or type(saved) is tuple else (saved,):
                # Of what a hook has packed nothing is known. Newer torch tells what is saved and runs no hook.
                if one is None or getattr(one, "unpack_hook", one) is not None:
                    continue
                tensor = one.data
                if self.is_tensor(tensor) and type(tensor) is not self.parameter:
                    place, size = tensors.storage_of(tensor, shared=True)
                    # Weights belong to the model: a layer saves a view of its own. Nothing is asked of a subclass.
                    base = tensor._base
                    of_model = base is not None and (type(base) is self.parameter or not self.is_tensor(base))
                    if place and not of_model and not (tensor.requires_grad and tensor.is_leaf):
                        places[place] = size
        except Exception:  # freed by a backward pass
            pass

    def saved_by(self, node):
        return sum([size for size, *_ in self._saved(node)[0].values()])

    def saved(self, node):
        """Bytes for each operation: of the nodes too, which stay where a backward pass has freed what they saved. What
        many operations far apart saved, such as a matrix that each step multiplies by, was there before them."""
        places, nodes, operations = self._saved(node)
        came = [
            size
            for size, times, newest, oldest in places.values()
            if times < TIMES or newest - oldest <= operations / 2
        ]
        return (sum(came) + nodes * NODE_BYTES) / operations

    # --- all together -----------------------------------------------------------------------------------

    def groups(self, objects, groups_before):
        """Tensors by shape, type and graph: those that grew most since before, and all together."""
        every = len(objects) // TENSORS + 1
        # Of each row of so many another one: what a step makes comes in the same order again and again.
        chosen = range(0, len(objects), every)
        chosen = [min(start + start * 7919 // every % every, len(objects) - 1) for start in chosen]
        places, groups = set(), {}
        count = self.own_number + self.shared_number
        total = {"count": count, "bytes": 0, "with_graph": 0, "views": 0, "kept_by_views": 0}
        scaled = [(objects[place], self.own_number / len(chosen)) for place in chosen]
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
            group = groups.setdefault(key, [0.0, 0.0, 0.0, 0])
            group[0] += scale
            group[1] += scale * (size if new else 0)
            group[2] += scale * (scale - 1)  # the variance of the count
            group[3] += 1
            total["bytes"] += scale * (size if new else 0)
        named = []
        groups = {key: (round(one[0]), round(one[1]), *one[2:]) for key, one in groups.items()}
        for key, (count, size, variance, number) in groups.items():
            # Of a kind of which none was chosen before, some were there for all that is known.
            unseen = 0, 0, UNSEEN * variance / number
            before = groups_before.get(key, unseen) if groups_before else (None, None, 0.0)
            if before[0] is not None and count - before[0] < CHANCE * (variance + before[2]) ** 0.5:
                continue
            named.append({"tensors": key, "count": count, "bytes": size})
            named[-1].update(count_before=before[0], bytes_before=before[1])
        named.sort(key=lambda one: (one["bytes_before"] or 0) - one["bytes"])
        total["groups"] = named[:GROUPS]
        for name in ("bytes", "with_graph", "views", "kept_by_views"):
            total[name] = round(total[name])
        return total, groups
