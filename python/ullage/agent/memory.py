"""What holds the private memory of this Python: malloc (in use, and free but kept), Python's own blocks, tensors?
And, where they are there: jemalloc or tcmalloc in malloc's place, and Arrow's pool.

Loaded at the first look. A look is made in passing, where the program calls something anyway (see safe_points.py),
and its own cost decides when the next one may come: common.BUDGET. The cheap half asks glibc for `malloc_info`,
which walks the lists of free chunks and tells their sizes; the dear half walks the collector's list, and only after
memory moved. Where growth goes on, census.py says what holds it, and where it finds nothing sites.py
says where it is allocated.

The surprise: free is not what `malloc_trim` would give back. Only whole pages inside a free chunk go, so that a heap
full of small holes keeps them all. Both figures are told.
"""

import gc
import posix
import sys
from itertools import islice

import _ullage_common as common
import _ullage_kinds as types
import _ullage_tensors as tensors
from _ullage_common import monotonic, thread_time

LEAST_APART_S = 0.5
MOVED = 2 << 20  # bytes: less is not worth a message
MOVED_MUCH = 4 << 20  # bytes: less is not worth a walk
WALK_S = 35e-9  # a block: what a walk took where few objects lay in a cache
MOST_BLOCKS = 4_000_000  # a walk over more would hold the program up
SAMPLE = 2000  # objects that stand for all
PAGE = 4096
_RESIDENT = b"RssAnon:", b"RssShmem:"
CHUNK = 48  # of a free chunk, what malloc_trim leaves in front

_began = monotonic()
_told = {}  # figures of the last message
_walked = {}  # figures of the last walk
_inherited = None  # figures of the parent's last walk, in a forked child that has not looked yet
_forked_with = 0  # private bytes that a forked child began with
_next_walk = 0.0
_growth = _shared_growth = None  # since the first look, of private memory and of what it shares
_census = None  # once growth went on
_tracing = None  # sites.py, once a census found no name
_worked = 0  # bytes resident when the program's functions were last told


def look(send, light=False, early=False):
    """Looks, tells what moved, and says for how many seconds nobody needs to ask again. `light`: no walk, and what grew
    is no growth of the program's. `early`: no walk, no census."""
    global _told
    private, shared = _resident()
    figures = {"anonymous": private, "blocks": sys.getallocatedblocks()}
    again = _trace(send, private)
    if again is not None:
        return again
    # What sites.py took comes twice in a process at most: counted in, it would blind this one for minutes.
    began = thread_time()
    # Batches that loader workers sent lie in shared memory, and whoever retains them grows by that.
    _grows(private, shared, light)
    try:
        _say_work(send, private + shared)
    except Exception:
        pass
    for part in (_malloc, _arrow):
        try:
            part(figures)
        except Exception:
            pass
    now = monotonic()
    took = thread_time() - began
    if _inherited is not None:
        _inherit(figures)
    if not light and not early and _is_due(figures, now):
        try:
            _walk(figures, now)
        except Exception:
            pass
    if "tensors" in figures or _moved(figures, _told, MOVED):
        try:
            _files(figures)
        except Exception:
            pass
        _told = figures
        send({"kind": "memory", "figures": figures})
    try:
        if not early:
            _take_census(send, private, now)
    except Exception:
        pass
    return max(LEAST_APART_S, took / common.BUDGET, (now - _began) / 20)


def files():
    """Bytes that went through files, for the last word of a process."""
    figures = {}
    _files(figures)
    return figures


def _after_fork():
    """In a forked child: what was told was told by another."""
    global _began, _told, _walked, _inherited, _forked_with, _next_walk, _growth, _shared_growth
    global _census, _worked
    _inherited, _forked_with = _walked or _inherited or {}, _resident()[0]
    _began, _told, _walked, _next_walk = monotonic(), {}, {}, 0.0
    _growth = _shared_growth = _census = None
    _worked = _forked_with
    if _tracing is not None:
        _tracing.after_fork()


common.in_child.append(_after_fork)


def _inherit(figures):
    """At a forked child's first look: a walk over what it inherited would find, in pages that it shares, what its
    parent knows, or found not worth one yet. So the first walk is one after its own memory has moved. Where nothing has
    since the parent's, its figures stand."""
    global _inherited, _walked
    if not _moved(figures, _inherited, MOVED_MUCH):
        # A parent that is a worker and was forked itself has not walked either, and knows none.
        figures.update({name: _inherited[name] for name in ("tensors", "python_large") if name in _inherited})
    _inherited, _walked = None, dict(figures, anonymous=_forked_with)


def _is_due(figures, now):
    """A walk is worth its cost, and paid, or what moved is as much as growth is."""
    if now < _next_walk or not _moved(figures, _walked, MOVED_MUCH):
        return False
    return now - _began >= figures["blocks"] * WALK_S / common.BUDGET or _moved(figures, _walked, GROWN)


def _moved(now, before, least):
    names = ("anonymous", "malloc_used", "malloc_free", "arrow_used")
    return not before or any(abs(now.get(name, 0) - before.get(name, 0)) >= least for name in names)


CAME, CAME_SHARE = 24 << 20, 0.05  # bytes, and of what is resident: less is not worth the names of functions
THREADS, FRAMES, NAME = 4, 24, 200


def _say_work(send, resident):
    """Tells where the program's threads are, where much memory has come: nobody can be asked once it was killed."""
    global _worked
    _worked = min(_worked, resident)
    if resident - _worked < max(CAME, CAME_SHARE * _worked):
        return
    _worked = resident
    send({"kind": "work", "stacks": _stacks()})


def _stacks():
    stacks, threads = [], list(common.native.frames().values())
    while threads and len(stacks) < THREADS:
        stack = _stack(threads.pop())  # the main thread is the oldest, and a function that ends meanwhile is let go
        if stack:
            stacks.append(stack)
    return stacks


def _stack(frame):
    """The innermost functions of a thread, the outermost of them first, as failure.py spells them; none of ours. With
    parentheses: what the innermost one calls that is of C, at the line where it does."""
    functions = []
    while frame is not None and len(functions) < FRAMES:
        code = frame.f_code
        name = dict.get(frame.f_globals, "__name__")
        if type(name) is not str or not name.startswith("_ullage_"):
            called = _called(code, frame.f_lasti) if not functions else None
            if called is not None:
                functions.append("%s:%s %s()" % (code.co_filename[-NAME:], frame.f_lineno, called))
            functions.append("%s:%s %s" % (code.co_filename[-NAME:], frame.f_lineno, code.co_name[:NAME]))
        frame = frame.f_back
    functions.reverse()
    return functions


def _called(code, at):
    try:
        return common.load("calls").called(code, at)
    except Exception:
        return None  # the functions are told all the same


def _read(path, most=4096):
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, most)
    finally:
        posix.close(fd)


def _resident():
    """(RssAnon, RssShmem) of this process, bytes (proc_pid_status(5)). Linux before 4.5 has neither there, and counts
    the latter among files."""
    text = _read("/proc/self/status")
    if any([name not in text for name in _RESIDENT]):
        sizes = _read("/proc/self/statm").split()
        return (int(sizes[1]) - int(sizes[2])) * posix.sysconf("SC_PAGE_SIZE"), 0
    return tuple([int(text[text.index(name) + len(name) :].split(None, 1)[0]) * 1024 for name in _RESIDENT])


def _files(figures):
    """/proc/self/io: `io_disk` went to or came from a disk, `io_all` went through read and write."""
    fields = dict([line.split(b":") for line in _read("/proc/self/io").splitlines()])
    figures["io_disk"] = int(fields[b"read_bytes"]) + int(fields[b"write_bytes"])
    figures["io_all"] = int(fields[b"rchar"]) + int(fields[b"wchar"])


# --- malloc ---------------------------------------------------------------------------------------------


def _malloc(figures):
    text = common.native.malloc_info()
    if text is not None:
        figures.update(read_malloc_info(text))
    other = common.native.other_malloc()
    if other is not None:
        name, used, held = other[0].decode(), other[1], other[2]
        figures[name + "_used"], figures[name + "_free"] = used, max(0, held - used)


def _arrow(figures):
    """Bytes that Arrow's default pool has handed out, and the most that it ever had. A pool of the system's malloc is
    in malloc's own figures."""
    default = common.names("pyarrow").get("default_memory_pool")
    if default is None or default is not common.names("pyarrow.lib").get("default_memory_pool"):
        return
    pool = default()
    if pool.backend_name != "system":
        figures["arrow_used"], figures["arrow_peak"] = pool.bytes_allocated(), pool.max_memory() or 0


def read_malloc_info(text):
    """`malloc_used`, `malloc_mapped` (large blocks, each a mapping), `malloc_free`, and of this `malloc_trimmable`
    and `malloc_free_main` (in the first heap, the others are arenas of threads); `malloc_arenas`: how many of all."""
    free = trimmable = current = mapped = main = 0
    number = -1
    for number, heap in enumerate(text.split(b"<heap ")[1:]):
        heap, _, after = heap.partition(b"</heap>")
        listed = kept = 0
        for line in heap.split(b"\n"):
            line = line.strip()
            if line.startswith((b"<size ", b"<unsorted ")):
                total, count = _attribute(line, b"total"), _attribute(line, b"count")
                listed += total
                # Its bytes behind the first page boundary, for one that lies anywhere.
                if count and total // count >= PAGE + CHUNK:
                    trimmable += total - count * (PAGE + CHUNK)
            elif line.startswith((b'<total type="fast"', b'<total type="rest"')):
                kept += _attribute(line, b"size")
            elif line.startswith(b'<system type="current"'):
                current += _attribute(line, b"size")
        free += kept
        # The rest is the heap's top. malloc_trim cuts that of the first heap only.
        if number == 0:
            main = kept
            trimmable += max(0, kept - listed - PAGE)
        if b'<total type="mmap"' in after:
            mapped = _attribute(after[after.index(b'<total type="mmap"') :], b"size")
    return {
        "malloc_used": max(0, current - free),
        "malloc_mapped": mapped,
        "malloc_free": free,
        "malloc_trimmable": min(free, trimmable),
        "malloc_free_main": main,
        "malloc_arenas": number + 1,
    }


def _attribute(line, name):
    start = line.index(b" " + name + b'="') + len(name) + 3
    return int(line[start : line.index(b'"', start)])


# --- growth that goes on --------------------------------------------------------------------------------

GROWN = 24 << 20  # bytes since the first look
GROWN_SHARE = 0.05
LIBRARY = 10  # modules of libraries that came between two looks
_LIBRARIES = "/site-packages/", "/dist-packages/", "/lib/python%d." % sys.version_info[0]
STEP = 1 << 20  # bytes: less is no rise
FALLEN = 0.8  # of the highest: then it begins anew
RISING = 3  # looks
LATE_S = 10.0  # after the first look one is enough: where looks come so rarely, three of them may be all that there are


class _Growth:
    def __init__(self, resident):
        self.first = self.highest = self.last = resident
        self.modules = len(sys.modules)  # that were loaded at the last look
        self.rising = 0  # looks that found more than all before
        self.began = self.rose = monotonic()

    def add(self, resident, light):
        modules = len(sys.modules)
        # What a library takes as it is loaded counts for nothing. The program's own modules may come without end.
        if light or _of_libraries(modules - self.modules) >= LIBRARY:
            self.first += max(0, resident - self.last)
        elif resident >= self.highest + STEP:
            self.rising, self.rose = self.rising + 1, monotonic()
        elif resident < FALLEN * self.highest:
            self.rising, self.highest = 0, resident
        self.highest, self.last, self.modules = max(self.highest, resident), resident, modules


def _of_libraries(newest):
    """How many of so many modules that came last are not the program's own, at most LIBRARY: own are those of a package
    below the folder of the main module, or the one that the program works in. It goes no further than it has to: each
    name and module that is gone to is written to (its reference count), in pages that forked workers share."""
    if newest < LIBRARY or type(sys.modules) is not dict:
        return newest
    main = _file_of(sys.modules.get("__main__"))
    folders = [folder + "/" for folder in (main.rpartition("/")[0], _here()) if len(folder) > 1]
    found, begin, end, gone_to = 0, 0, LIBRARY, set()
    while begin < newest:
        # Taken at once: nothing else runs in between. What another thread imports meanwhile moves the others.
        for name in list(islice(reversed(sys.modules), begin, min(end, newest))):
            if id(name) not in gone_to:
                gone_to.add(id(name))
                found += not _is_own(name, folders)
            if found == LIBRARY:
                return LIBRARY
        begin, end = end, 4 * end
    return found


def _is_own(name, folders):
    if type(name) is not str:  # to ask for it would call its class
        return False
    if name.startswith("_ullage_"):  # loaded when one is needed, early or late
        return True
    # A package without a file of its own is no reason.
    files = [_file_of(sys.modules.get(one)) for one in (name.partition(".")[0], name)]
    files = [file for file in files if file]
    is_library = not files or any([part in file for part in _LIBRARIES for file in files])
    return not is_library and all([any([file.startswith(folder) for folder in folders]) for file in files])


def _here():
    try:
        return posix.getcwd()
    except OSError:  # somebody has removed it
        return ""


def _file_of(module):
    file = dict.get(module.__dict__, "__file__") if type(module) is types.ModuleType else None
    return file if type(file) is str else ""


def _grows(private, shared, light):
    """Each for itself: what comes and goes in the one would hide a growth of the other."""
    global _growth, _shared_growth
    if _growth is None:
        _growth, _shared_growth = _Growth(private), _Growth(shared)
    _growth.add(private, light)
    _shared_growth.add(shared, light)


def _take_census(send, private, now):
    """Says what holds it, where growth goes on."""
    global _census
    grown = sum([one.last - one.first for one in (_growth, _shared_growth) if _goes_on(one)])
    if not rises() or grown < max(GROWN, GROWN_SHARE * _growth.first) or tensors.begins():
        return
    if _census is None:
        _census = common.load("census").Census()
    if _census.due(grown, now):
        _census.take(send, private, grown)
        if _census.unexplained and _may_trace():
            _begin_to_trace(private)


def _may_trace():
    """The program has not imported tracemalloc, and it would be seen if it did."""
    return "tracemalloc" not in sys.modules and common.replaces(b"TRACEMALLOC") and common.replaces(b"IMPORTS")


def _begin_to_trace(private):
    global _tracing
    _tracing = common.load("sites")
    _tracing.start(private)


def _trace(send, private):
    """While allocations are traced nothing else is looked at: it is over in seconds."""
    try:
        return _tracing.look(send, private) if _tracing is not None else None
    except Exception:
        return None


def rises():
    """Growth goes on, as far as looks have shown."""
    return _goes_on(_growth) or _goes_on(_shared_growth)


def rose_lately():
    """It went on until a short while ago: a program that rose once, as it began, is at rest."""
    since = monotonic() - LATE_S
    return any([_goes_on(growth) and growth.rose >= since for growth in (_growth, _shared_growth)])


def _goes_on(growth):
    if growth is None or growth.rising == 0:
        return False
    return growth.rising >= RISING or monotonic() >= growth.began + LATE_S


# --- the collector's list -------------------------------------------------------------------------------


def _walk(figures, now):
    """`tensors`: bytes of torch's tensors that Python knows. `python_large`: of its objects, what lies in malloc."""
    global _walked, _next_walk
    if figures["blocks"] > MOST_BLOCKS or tensors.begins():
        return
    began = thread_time()
    found = common.native.large(gc.get_threshold(), tensors.kinds(), SAMPLE // 10, _CONTAINERS, _LEAVES, SAMPLE)
    if found is None:
        return
    own, shared, number, figures["python_large"] = found
    figures["tensors"] = _tensors(own) + _tensors(shared) * number // max(1, len(shared))
    del found, own, shared
    _walked = figures
    _next_walk = now + max(1.0, (thread_time() - began) / common.BUDGET, (now - _began) / 20)


_CONTAINERS, _LEAVES = types.with_sizes(list, dict, set, tuple), types.with_sizes(str, bytes, bytearray, int)


def _tensors(found):
    # Of very many, some stand for all; then a view counts as what it shows.
    step = len(found) // SAMPLE + 1
    places, total = set(), 0
    for one in found[::step]:
        place, size = tensors.storage_of(one)
        if step > 1:
            size = tensors.shown_of(one, size)
        if place and place not in places:
            places.add(place)
            total += size * step
    return total
