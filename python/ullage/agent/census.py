"""What holds the memory by which this Python grows? Containers that become longer, values that become larger, tensors
by shape, and autograd graphs that reach ever further back; each with the name by which the program reaches it.

Loaded when growth goes on, and taken a few times in a process, ever further apart: memory.py asks when one is due. What
an object holds says contents.py, by which name it is reached paths.py.

No code of the program runs: what an object is comes from type(), its parts from the built-in types and the collector.
"""

import gc
import sys
from _thread import _local
from _weakref import ref
from itertools import cycle

import _ullage_alike as alike
import _ullage_caches as caches
import _ullage_chains as chains
import _ullage_common as common
import _ullage_contents as contents
import _ullage_from_below as from_below
import _ullage_garbage as garbage
import _ullage_held as held
import _ullage_kinds as types
import _ullage_lines as lines
import _ullage_numbered as numbered
import _ullage_paths as paths
import _ullage_queues as queues
import _ullage_slots as slots
import _ullage_weigh as weigh
from _ullage_common import monotonic, thread_time

MORE = 16 << 20  # bytes, and share of what had grown: less is not worth another
MORE_SHARE = 0.1
APART_S = 2.0  # the first two; then half of the time that has passed, and as long as the budget wants
LINE_S = 0.004
TAKEN_S = 0.002  # at least, to see whether code takes from a container
WALK_S, ROUGH_S, HOLDERS_S, GRAPHS_S, HELD_S = 0.02, 0.005, 0.02, 0.1, 0.12  # of the processor, for each part
FIRST_S = 0.002  # for a graph that was not met before
LIBRARIES_S, REFERRERS_S, SUSPENDED_S = 0.01, 0.04, 0.01
FIRST_DEPTHS_S, DEPTHS_S = 0.04, 0.1
MOST_DEPTHS = 5000  # names below which all is gone through
MOST_APART = 2000
FEW_TRACEBACKS, SPREAD = 48, 7919  # that stand for all, so far apart (a prime)
MANY_REFERRERS = 400_000  # objects: to ask for more who refers to one holds the program's other threads up
MANY_ELEMENTS = 2_000_000  # of long containers: each of them is compared
MANY_FROZEN = 400_000  # objects
CIRCLE = "Using backward() with create_graph=True"
LEAST_LONG = 8  # elements of a container worth a look
LEAST_MORE = 2
NESTED_MORE = 0.1  # share of elements of elements: some that stand for all may not be the same ones
LARGE, WORTH = 1 << 20, 256 << 10
MOST_WEIGHED = 40
MOST_NAMED = 100
MOST_OTHERS = 1000  # containers that grew, and are only asked for the attribute that they are
HOLDERS, GRAPHS = 6, 3
HOOKS = 16  # of a module, more than before
OPERATIONS = 100  # by which a graph reaches further back
_CALLABLES = (types.MethodType,)
_TRACEBACKS = (types.TracebackType,)
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_APART = _SUSPENDED + _TRACEBACKS + _CALLABLES
EXPLAINED = 0.3  # of the growth: with less, sites.py is asked where it is allocated


class Census:
    """The censuses of one process."""

    def __init__(self):
        self.unexplained = False  # by the last one
        self._taken = 0
        self._began = monotonic()
        self._next = 0.0
        self._grown = 0  # private bytes more than at the first look
        self._last = self._at_first = 0  # what had grown at the last one, and at the first
        # What was seen first, and what had grown by then: of containers by their id, and of what has a name.
        self._lengths = {}
        self._unnamed = {}
        self._sizes = {}
        self._reaches = {}
        self._groups = {}
        self._depths = {}
        self._held_at = None  # what had grown when it was last asked what native code holds
        self._runs = {}  # what hangs below some elements of the longest containers
        self._filled = {}  # of this census
        self._ends = {}  # of lists and deques, by ids: nothing lives longer for it
        self._lines = lines.Lines()
        self._nested = {}  # elements of a container's elements, as of its own: it may be a dict of lists
        self._suspended = []  # weak references
        self._bound = {}  # id of a function -> how many methods of it are bound
        self._traced = None  # how many tracebacks there were
        self._cut = False  # there was no time for all of it
        self._objects, self._elements, self._ours, self._frozen = 0, 0, (), -1

    def due(self, grown, now):
        """`grown`: private bytes more than at the first look."""
        self._last = min(self._last, grown)
        return now >= self._next and (self._taken == 0 or grown - self._last >= max(MORE, MORE_SHARE * self._last))

    def take(self, send, private, grown):
        """Takes a census and tells it."""
        self._taken += 1
        self._grown = grown
        began, self._next = thread_time(), monotonic() + APART_S * self._taken  # so long, should it raise
        heap, self._cut = contents.Contents(), False
        message = {"kind": "census", "number": self._taken, "private": private, "grown": grown}
        self._at_first = grown if self._taken == 1 else min(self._at_first, grown)
        with heap.quiet():
            self._count(heap, message)
        explained = self._is_explained(message["holders"], message["graphs"], message["tensors"])
        self.unexplained = self._taken > 1 and not explained
        message["holders"] = message["holders"][:HOLDERS]
        took = thread_time() - began
        self._last, now = grown, monotonic()
        later = max(APART_S, (now - self._began) / 2, took / common.BUDGET) if self._taken > 1 else APART_S
        self._next = now + later
        message["took_us"] = int(took * 1e6)
        send(message)

    def _count(self, heap, message):
        # First, because it counts references, and those of the lists below would be too many.
        message["garbage"] = garbage.count(heap)
        many, seen = set(), set()
        spots = list(paths.walk(thread_time() + WALK_S, many, seen))
        # Not before the walk: this list refers to the dicts of locals that the walk empties, where nobody else does.
        found = heap.standing(_APART, MOST_APART)
        objects, long, number_of_objects, *apart = found if found is not None else (None, (), None)
        self._cut = found is None
        found = None  # what is apart is referred to by as few lists as can be
        suspended, tracebacks, callables = self._apart(*apart)
        del apart
        spots += paths.walk(thread_time() + SUSPENDED_S, many, seen, suspended)
        large = {}
        for number, (value, _) in enumerate(spots):
            long_enough = id(type(value)) in paths.OF_CONTAINERS and len(value) >= LEAST_LONG
            if long_enough or id(value) in many or heap.is_of_objects(value):
                large[id(value)] = value, number
        unnamed = {id(value): (value, None) for value in long if id(value) not in large}
        self._ours = (id(large), id(unnamed), id(spots), id(suspended))
        own = (self._lengths, self._unnamed, self._nested, self._sizes, self._reaches, self._groups, self._ends)
        for ours in (objects, long, heap.shared, spots, suspended, seen, many, *own):
            large.pop(id(ours), None)
            unnamed.pop(id(ours), None)
        del long
        self._filled = {key: heap.length(value) for key, (value, _) in {**unnamed, **large}.items()}
        self._objects = number_of_objects or 0
        lists = [value for value, _ in (*unnamed.values(), *large.values()) if id(type(value)) in paths.OF_CONTAINERS]
        self._elements = sum(map(len, lists))
        del lists
        hooks = paths.hooks(spots)
        names, until = {}, thread_time() + HOLDERS_S
        holders = self._holders(heap, large, unnamed, names, spots, hooks, until)
        holders += self._values(heap, names, spots, hooks, until)
        if self._elements <= MANY_ELEMENTS:
            bound = held.Methods(self._bound, self._base, self._grown)
            holders += bound.held(heap, *callables)
            self._bound = bound.counts
        if not any([one["errors"] >= 0.5 for one in holders]):
            holders += self._held_by_errors(heap, *tracebacks)
        del callables, tracebacks
        holders.sort(key=lambda one: -one["more_bytes"] - one["hidden_bytes"])
        reaches, tensors = {}, None
        graphs = self._graphs(heap, spots, reaches, hooks, thread_time() + GRAPHS_S)
        message["grads"] = self._gradients(heap, objects)
        if objects is not None:
            tensors, groups = heap.groups(objects, self._groups)
            self._groups = self._groups or groups
            self._unnamed = self._first(unnamed, self._unnamed)
        self._lengths, self._sizes, self._reaches, self._filled = self._first(large, self._lengths), names, reaches, {}
        del objects, large, unnamed, spots, suspended  # another thread may let go of it meanwhile
        frozen = self._count_frozen()
        if self._taken == 1 or not self._is_explained(holders, graphs):
            holders += self._deep(heap, hooks, frozen)
        message.update(
            objects=number_of_objects,
            cut=self._cut,
            collects=common.native.collects(),
            collects_after=gc.get_threshold()[0],
            frozen=frozen,
            sees_saved=heap.sees_saved,
            holders=holders,
            graphs=graphs,
            tensors=tensors,
        )

    def _count_frozen(self):
        """CPython counts them one by one: once more of very many of them, and they are not counted again."""
        # 0 where they come from malloc.
        if self._frozen < MANY_FROZEN and 0 < sys.getallocatedblocks() <= MANY_ELEMENTS:
            self._frozen = gc.get_freeze_count()
        return self._frozen if self._frozen >= 0 else None

    def _apart(self, some=None, number=0):
        """Generators and coroutines; (tracebacks, how many each of them stands for), and so bound methods. Where there
        are too many objects to go through, the generators that were met before."""
        if some is None:
            known = [known() for known in self._suspended]
            return [one for one in known if one is not None], ([], 1.0), ([], 1.0)
        each = number / max(1, len(some))
        suspended = [one for one in some if id(type(one)) in paths.SUSPENDED]
        self._suspended = [ref(one) for one in suspended]
        tracebacks = [one for one in some if type(one) is types.TracebackType]
        return suspended, (tracebacks, each), ([one for one in some if type(one) is types.MethodType], each)

    def _base(self, figure, before):
        """What a figure is compared with from now on: with what it was at first, unless it has fallen below that, or
        the process has."""
        kept = before is not None and before[0] <= figure and before[1] <= self._grown
        return before if kept else (figure, self._grown)

    def _first(self, containers, before):
        return {key: self._base(self._filled.get(key, 0), before.get(key)) for key in containers}

    # --- containers and values that grow --------------------------------------------------------------------

    def _holders(self, heap, large, unnamed, names, spots, hooks, until):
        """Containers longer than when first seen, weighed; the first time those with a name. `names` gets lengths."""
        named, inner, ends, ends_before = {}, {}, {}, {}
        filled = self._filled
        for key, (_, number) in sorted(large.items(), key=lambda one: -filled[one[0]])[:MOST_NAMED]:
            name = paths.name(spots[number])
            # A new one under an old name: the program makes it anew each time. Many share one with `[...]`.
            base = self._lengths.get(key) or self._unnamed.get(key)
            named[key] = base or (None if "[...]" in name else self._sizes.get(name))
            names[name] = self._base(filled[key], named[key])
            # Attributes are no elements of each other: each of them counts for itself.
            if thread_time() <= until and not paths.is_of_attributes(spots[number]):
                inner[key] = heap.nested(large[key][0])
            ends_before[key] = before = self._ends.get(key) or self._ends.get(name)
            # Without time for it, what was known stays known: a queue is not told by what could not be read.
            ends[key] = ends[name] = queues.ends(large[key][0]) if thread_time() <= until else before
        candidates = []
        for some, bases in ((large, named), (unnamed, self._unnamed)):
            for key, (value, number) in some.items():
                base = bases.get(key) or self._lengths.get(key)
                within, length = self._nested.get(key), inner.get(key, 0)
                grew = base is not None and filled[key] - base[0] >= LEAST_MORE and self._grown > base[1]
                deeper = within is not None and length - within[0] > NESTED_MORE * length and self._grown > within[1]
                # One more place that is taken does not hide what came to all the others. New ones differ in length.
                if deeper and (not grew or (length - within[0]) * filled[key] > 2 * (filled[key] - base[0]) * length):
                    candidates.append((value, number, within, length, True))
                elif grew:
                    candidates.append((value, number, base, filled[key], False))
                elif base is None and number is not None and self._taken == 1:
                    candidates.append((value, number, (0, 0), filled[key], False))
        kept = {key: base for key, base in self._nested.items() if key in large}
        self._nested = {**kept, **{key: self._base(length, kept.get(key)) for key, length in inner.items()}}
        self._ends = ends
        candidates.sort(key=lambda one: (one[1] is None, one[2][0] - one[3]))
        candidates = weigh.by_turns(heap, candidates, thread_time() + ROUGH_S)
        found, others = [], []
        for place, (value, number, base, length, nested) in enumerate(candidates):
            spot = None if number is None else spots[number]
            if place >= MOST_WEIGHED or thread_time() > until:
                self._cut = self._cut or place < MOST_WEIGHED
                if spot is not None and not nested:
                    others.append((value, spot, length - base[0], False))
                if len(others) >= MOST_OTHERS:
                    break
                continue
            if number is None and not slots.complete(value):
                continue
            cache = _cache_of(spot)
            inside, more = heap.into(value, type(value), cache), (length - base[0]) / max(1, length)
            if cache is None and self._taken > 1 and thread_time() <= until:
                inside = chains.weighed(heap, value, inside, more, self._grown - base[1])
            inside["more_bytes"] = int(inside["bytes"] * more)
            inside["hidden_bytes"] = int(inside["hidden_bytes"] * more)
            # A hook's own bytes are few; what it refers to lies elsewhere.
            is_hook = self._taken > 1 and type(value) is paths.OrderedDict and spot is not None
            is_hook = is_hook and length - base[0] >= HOOKS and paths.path(spot)[0].endswith("_hooks")
            if inside["more_bytes"] + inside["hidden_bytes"] < (WORTH if self._taken > 1 else LARGE) and not is_hook:
                if spot is not None and not nested:
                    others.append((value, spot, length - base[0], True))
                continue
            bounded = type(value) is paths.deque and value.maxlen is not None
            bounded = bounded or cache is not None and caches.fits(cache, inside["bytes"] / max(1, length))
            kind = "array of objects" if type(value) is heap.array else _kind(value, spot)
            inside.update(type=kind, length=length, nested=nested, bounded=bounded, of_bytes=self._grown - base[1])
            inside["before"] = base[0] if self._taken > 1 else None
            found.append((inside, value, spot))
        found.sort(key=lambda one: -one[0]["more_bytes"] - one[0]["hidden_bytes"])
        found = [one for one in found if not one[0]["nested"] or not any([_is_within(other, one) for other in found])]
        found = alike.together(found, others, (self._lengths, self._unnamed))
        for inside, value, spot in found[:HOLDERS]:
            before, taken_until = ends_before.get(id(value)), max(until, thread_time() + TAKEN_S)
            inside["drained"] = queues.is_drained(value, before)
            inside["taken_from"], inside["in_order"] = queues.is_taken_from(value, spot, before, taken_until)
            inside["numbered"] = numbered.is_record(value, spot)
            inside["element"] = self._lines.element(value, inside["element"])
            inside.setdefault("name", "")
            if spot is not None:
                _say_where(hooks, inside, spot, until)
        self._lines.next()
        self._name_others([(inside, value) for inside, value, spot in found[:HOLDERS] if spot is None])
        return [one[0] for one in found[:HOLDERS]]

    def _name_others(self, found):
        """Of what no walk came to: first the globals and classes of libraries, then who refers to it."""
        wanted = {id(value): inside for inside, value in found}
        for key, (name, owner) in from_below.of_libraries(set(wanted), thread_time() + LIBRARIES_S).items():
            wanted.pop(key).update(name=name, owner=owner)
        if self._objects > MANY_REFERRERS or self._elements > MANY_ELEMENTS:
            return
        until = thread_time() + REFERRERS_S
        for inside, value in found:
            if id(value) in wanted and thread_time() < until:
                inside["name"] = from_below.backward(value, (id(found), id(wanted), *self._ours), until)

    def _values(self, heap, names, spots, hooks, until):
        """Tensors, arrays and bytes under a name that are larger than before: the program makes them anew, longer. And
        an exception that is raised again and again: it gets longer by a traceback each time."""
        found, count = [], 0
        for spot in spots:
            error = issubclass(type(spot[0]), BaseException)
            length, size = heap.retained_by(spot[0]) if error else (0, heap.size(spot[0]))
            if size < LARGE and length < LEAST_LONG or count >= MOST_NAMED:
                continue
            count += 1
            name, length = paths.name(spot), length or size
            base = self._sizes.get(name)
            names[name] = self._base(length, base)
            if base is None or length <= base[0] or self._grown <= base[1]:
                continue
            more = size * (length - base[0]) // length
            if more >= WORTH:
                one = {
                    "type": types.type_name(paths.type_of(spot[0])),
                    "length": length,
                    "before": base[0],
                    "bytes": size,
                }
                one.update(more_bytes=more, own_bytes=size, hidden_bytes=0, of_bytes=self._grown - base[1])
                one.update(graph=0.0, views=0.0, errors=float(error), element="", bounded=False)
                found.append((one, spot))
        found.sort(key=lambda one: -one[0]["more_bytes"])
        for one, spot in found[:HOLDERS]:
            _say_where(hooks, one, spot, until)
        return [one for one, _ in found[:HOLDERS]]

    def _held_by_errors(self, heap, tracebacks, each):
        """Tracebacks that became more, wherever their exceptions hang: in a chain, in tasks, deep in objects."""
        count = int(len(tracebacks) * each)
        base = self._traced = self._base(count, self._traced)
        if count - base[0] < HOOKS or self._grown <= base[1]:
            return []
        # Not every n-th: each exception passes the same functions, in turn.
        length, few = len(tracebacks), min(len(tracebacks), FEW_TRACEBACKS)
        some = [tracebacks[number * SPREAD % length] for number in range(few)]
        size, place, line = heap.in_frames(some, count)
        del some
        more = size * (count - base[0]) // count
        if more < WORTH:
            return []
        one = {"type": "tracebacks", "name": "", "owner": "", "place": place, "line": line, "by_hook": False}
        one.update(length=count, before=base[0], bytes=size, more_bytes=more, own_bytes=size, hidden_bytes=0)
        one.update(of_bytes=self._grown - base[1], graph=0.0, views=0.0, errors=1.0, element="", bounded=False)
        return [one]

    def _deep(self, heap, hooks, frozen):
        """The name below which most of what came hangs, where it is more than when the name was first seen."""
        depths = common.load("depths")
        spots = list(paths.walk(thread_time() + WALK_S, None, {*map(id, depths.waiting())}, None, True, MOST_DEPTHS))
        # Where there are too many objects for the collector's list, there are for all that the names lead to.
        found, held_at, seconds = None, None, FIRST_DEPTHS_S if self._taken == 1 else DEPTHS_S
        if self._objects:
            few = self._objects <= MANY_REFERRERS and frozen == 0
            late = held.spots(self._objects, HELD_S) if few else None
            found = depths.below(heap, spots, WORTH, seconds, late or ())
            held_at = self._grown if late is not None and found is not None else None
            del late
        if found is None:
            self._cut = self._cut or self._taken > 1
            return self._of_some(heap, depths, spots, hooks)
        before, more = self._depths, []
        self._depths = {}
        for name, one in found.items():
            key = id(one.spot[0])  # which function runs, and so its name, is not always the same
            base = before.get(key) or before.get(name)
            if type(one.spot[1]) is held.Callbacks:  # there were none of them when it was last asked
                key, base = name, before.get(name)
                if base is None and self._held_at is not None:
                    base = 0, self._held_at, 0
            kept = base is not None and base[0] <= one.bytes and base[1] <= self._grown
            self._depths[name] = self._depths[key] = base if kept else (one.bytes, self._grown, one.objects)
            if kept and one.bytes - base[0] >= WORTH and one.objects >= base[2] + LEAST_MORE and self._grown > base[1]:
                more.append((one.bytes - base[0], one))
        self._held_at = held_at
        if not more:
            return []
        size, one = depths.innermost(more)
        base, root = self._depths[paths.name(one.spot)], one.spot[1]
        told = {
            "type": "callbacks" if type(root) is held.Callbacks else _kind(one.spot[0], None),
            "length": one.objects,
            "before": base[2],
            "deep": True,
            "bounded": False,
        }
        stored = sum(one.storages.values())
        told.update(bytes=one.bytes, more_bytes=size, own_bytes=min(one.bytes, one.bytes - stored + one.shown))
        told.update(of_bytes=self._grown - base[1], hidden_bytes=0, graph=0.0, errors=0.0, element="")
        told.update(views=float(one.shown * contents.VIEW <= stored))
        if type(root) is held.Callbacks:
            told.update(name=root.name, line=root.line, element=root.element, place="", owner="", by_hook=True)
        else:
            _say_where(hooks, told, one.spot, 0)
        return [told]

    def _of_some(self, heap, depths, spots, hooks):
        """The same of the longest containers, by some of their elements, where there is too much to go through."""
        found = depths.sampled(heap, spots, thread_time() + DEPTHS_S)
        before, more, self._runs = self._runs, [], {}
        for name, one in found.items():
            key = id(one.spot[0])
            base = before.get(key) or before.get(name)
            kept = base is not None and base[1] <= self._grown and base[2] == one.scale
            self._runs[name] = self._runs[key] = base if kept else (one.runs, self._grown, one.scale, one.objects)
            length = self._lengths.get(key)
            # Where places are free, it says nothing of those that are taken.
            full = length is not None and heap.length(one.spot[0]) == len(one.spot[0])
            if not kept and full and depths.grew(one.spot[0], length[0]) and length[1] < self._grown:
                # Never gone through so far: what was added since it was first seen stands at its end.
                runs, objects = one.until(length[0])
                base, kept = (runs, length[1], one.scale, objects), True
            size = min(one.more(base[0]), self._grown - base[1]) if kept else 0
            if size >= EXPLAINED * (self._grown - self._at_first) and size >= WORTH:
                more.append((size, one, base))
        if not more:
            return []
        size, one, base = max(more, key=lambda some: some[0])
        held = min(int(sum(one.runs) * one.scale), self._grown)
        told = {"type": types.type_name(type(one.spot[0])), "length": int(one.objects * one.scale), "deep": True}
        told.update(
            before=int(base[3] * base[2]), bytes=max(size, held), more_bytes=size, of_bytes=self._grown - base[1]
        )
        hidden = max(0, one.storages - one.shown) / max(1, sum(one.runs))
        told.update(own_bytes=int(told["bytes"] * (1 - hidden)), element="", bounded=False)
        told.update(hidden_bytes=0, graph=0.0, errors=0.0, views=float(one.shown * contents.VIEW < one.storages))
        _say_where(hooks, told, one.spot, 0)
        return [told]

    def _is_explained(self, holders, graphs, tensors=None):
        """Names hold a good part of what came, or tensors are it, of which sites.py would see nothing."""
        held = sum([one["more_bytes"] + one["hidden_bytes"] for one in holders])
        held += sum([one["more_bytes"] for one in graphs])
        more = [one["bytes"] - (one["bytes_before"] or 0) for one in tensors["groups"]] if tensors else []
        return held + sum([size for size in more if size > 0]) >= EXPLAINED * (self._grown - self._at_first)

    # --- graphs ---------------------------------------------------------------------------------------------

    def _graphs(self, heap, spots, reaches, hooks, until):
        """Named tensors whose graph reaches further back than when the name was first seen, and from there on without a
        break: a step's own graph does not reach back to what was made before the last census."""
        found, todo = [], []
        for spot in spots:
            in_a_list = type(spot[1]) is tuple and id(type(spot[1][0])) in paths.OF_LISTS
            if heap.is_tensor(spot[0]) and not in_a_list:
                node = heap.grad_fn(spot[0])
                if node is not None and len(todo) < MOST_NAMED:
                    todo.append((paths.name(spot), node, spot))
        # Those that were long before come first: the longer a graph, the sooner the time is over.
        known = self._reaches
        todo.sort(key=lambda one: known[one[0]][0] if one[0] in known else 0, reverse=True)
        for name, node, spot in todo:
            base, now = known.get(name), thread_time()
            if now > until:
                self._cut = True
                if base is not None:
                    reaches[name] = base
                continue
            # One long graph does not hide the next.
            oldest, newest, whole = heap.reach(node, now + (FIRST_S if base is None else (until - now) / 2))
            reach = max(0, newest - oldest)
            if base is None or whole and reach < base[0] or self._grown < base[1]:
                reaches[name] = reach, self._grown, newest, newest, False
                continue
            # From census to census without a break. Of a graph too long to be gone along, what was known before holds.
            held = oldest <= base[3] or not whole and base[4]
            reaches[name] = (*base[:3], newest, True) if held else (*base[:3], newest if whole else base[3], False)
            if not held:
                self._cut = self._cut or not whole
                continue
            operations = reach if whole else max(reach, newest - base[2] + base[0])
            if operations < base[0] + OPERATIONS or self._grown <= base[1]:
                continue
            one = {"operations": operations, "before": base[0], "of_bytes": self._grown - base[1], "type": "Tensor"}
            found.append((one, node, spot))
        found.sort(key=lambda one: one[0]["before"] - one[0]["operations"])
        for one, node, spot in found[:GRAPHS]:
            one["more_bytes"] = int(heap.saved(node) * (one["operations"] - one["before"]))
            _say_where(hooks, one, spot, until)
        return [one for one, _, _ in found[:GRAPHS]]

    def _gradients(self, heap, tensors):
        """Leaves whose gradient carries a graph: `backward(create_graph=True)` leaves them, and they hold each other in
        a circle of C++'s that no collector sees. And whether torch has warned of it in this process."""
        number, named = 0, ""
        for one in tensors or ():
            try:
                gradient = one.grad if one.is_leaf and one.requires_grad else None
                if heap.is_tensor(gradient) and gradient.grad_fn is not None:
                    number += 1
                    named = named or heap.label(one)[7:]
            except Exception:
                pass
        return {"with_graph": number, "tensor": named, "warned": _warned_of_circles()}


def _warned_of_circles():
    """CPython keeps the texts of warnings that it has shown, in the module that they were shown for."""
    for name in ("torch.autograd.graph", "torch.autograd"):
        shown = common.names(name).get("__warningregistry__")
        for key in list(shown) if type(shown) is dict else ():
            if type(key) is tuple and key and type(key[0]) is str and key[0].startswith(CIRCLE):
                return True
    return False


def _is_within(one, outer):
    """What grew of a container's elements is most of it one of these, which was found itself."""
    spot = one[2]
    while one is not outer and type(spot) is tuple:
        if spot[0] is outer[1]:
            return 2 * one[0]["more_bytes"] >= outer[0]["more_bytes"]
        spot = spot[1]
    return False


def _cache_of(spot):
    """The function whose cache this is."""
    parent = spot[1][0] if spot is not None and type(spot[1]) is tuple else None
    return parent if type(parent) is paths.CACHE else None


def _kind(value, spot):
    parent = type(spot[1][0]) if spot is not None and type(spot[1]) is tuple else None
    if parent is paths.CACHE or type(value) is paths.CACHE:
        return "lru_cache"
    if parent is cycle:
        return "itertools.cycle"
    if parent is not None and issubclass(parent, _local):
        return "threading.local"  # what it holds for each thread
    return types.type_name(type(value))


def _future_of(spot):
    """The class of the future whose callbacks these are, which no attribute leads to; one that is done has none."""
    kind = common.names("_asyncio").get("Future")
    for one in (spot[0], spot[1][0] if type(spot[1]) is tuple else None):
        if kind is not None and type(one) is kind and types.waits(one, kind):
            return types.type_name(kind)
    return ""


def _say_where(hooks, one, spot, until):
    name, root, owner, functions = paths.path(spot)
    line, code = paths.line(spot, max(until, thread_time() + LINE_S))
    one.update(name=name, place=root.place, owner=_future_of(spot) or owner, line=line, by_hook=id(code) in hooks)
    one["in_constructor"] = _is_being_made(name, root, code)
    if one["type"] == "lru_cache":
        cache = spot[0] if type(spot[0]) is paths.CACHE else _cache_of(spot)
        function = types.attribute(cache, "__wrapped__")
        if type(function) is types.FunctionType:
            code = function.__code__
            one["line"] = "%s:%d" % (code.co_filename.rpartition("/")[2], code.co_firstlineno)


def _is_being_made(name, root, code):
    """`self.samples`, to which the `__init__` that is running adds itself: it is whole when that returns."""
    if code is None or code is not root.code or code.co_name != "__init__" or not code.co_argcount:
        return False
    first, _, attribute = name.partition(".")
    return first == code.co_varnames[0] and attribute.isidentifier()
