"""Where in the program was that allocated by which this Python grows? tracemalloc, switched on late and for seconds.

Asked by memory.py where a census found that growth goes on, and no name that holds it. The surprise: to come late is no
loss. tracemalloc knows only what was allocated while it traced, and what lives on of that is the growth. Of torch's
tensors it knows nothing, their storages are C++'s; of numpy's arrays it does.

A program that may trace by itself is left alone: a process has one tracemalloc, where a second start changes nothing
and one stop ends it for all. So memory.py asks for nothing once the program has imported it, and `give_way` ends what
was begun as soon as it does. While it traces, Python allocates at about half its speed.

Up to CPython 3.12.8 and 3.13.1 the end of tracing crashes a thread of C that allocates from Python meanwhile, such as
one that takes the interpreter's lock for the first time (gh-128679), which a thread of the agent's does. There nothing
is traced, and a program of several threads that traces is not looked into meanwhile (python/agent, guard.rs).
"""

import sys
import _tracemalloc

import _ullage_common as common
from _ullage_common import monotonic

ENOUGH = 16 << 20  # private bytes that came meanwhile
MANY = 50_000  # blocks that came: each costs memory, and the reader time
LONGEST_S = 10.0
TIMES = 2  # in a process
APART_S = 60.0
AGAIN_S = 0.1
FRAMES = 6
NAMED = 5
OURS = "/ullage_"  # files of the agent, which looks at memory meanwhile
OF_OTHERS = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ")

_began = 0.0
_blocks = _private = 0
_done = 0
_next = 0.0
_tracing = False


def start(private):
    """Begins to trace, where that is due."""
    global _began, _blocks, _private, _next, _tracing
    now = monotonic()
    if _tracing or _done >= TIMES or now < _next:
        return
    if _tracemalloc.is_tracing() or common.end_of_tracing_may_crash(sys.version_info[:3]):
        return
    _tracemalloc.start(FRAMES)
    _tracing = True
    _began, _next = now, now + APART_S
    _blocks, _private = sys.getallocatedblocks(), private


def look(send, private):
    """Seconds after which it wants to be asked again; none where it does not trace. Tells and ends when enough came."""
    global _done
    if not _tracing:
        return None
    came = private - _private
    seconds = monotonic() - _began
    if came < ENOUGH and sys.getallocatedblocks() - _blocks < MANY and seconds < LONGEST_S:
        return AGAIN_S
    _done += 1
    try:
        traces = _tracemalloc._get_traces()
    finally:
        _stop()
    message = _by_line(traces)
    if message["bytes"] > 0:
        send(dict(message, kind="sites", seconds=seconds, came=came))
    return None


def _stop():
    global _tracing
    if _tracing:
        _tracing = False
        _tracemalloc.stop()


def give_way():
    """The program has imported tracemalloc, and may begin to trace."""
    global _done
    _stop()
    _done = TIMES


def after_fork():
    """In a forked child: it would trace to its end."""
    global _done, _next
    _stop()
    _done, _next = 0, 0.0


def _by_line(traces):
    """`bytes` and `blocks` of all, and the lines of the program that allocated most."""
    lines, whole, blocks, known = {}, 0, 0, {}
    for trace in traces:
        size, frames = trace[1], trace[2]
        if OURS in frames[0][0]:
            continue
        line = known.get(frames)
        if line is None:
            line = known[frames] = _line(frames)
        whole += size
        blocks += 1
        one = lines.setdefault(line, [0, 0])
        one[0] += size
        one[1] += 1
    most = sorted(lines.items(), key=lambda one: -one[1][0])[:NAMED]
    named = [{"line": line, "bytes": size, "blocks": count} for line, (size, count) in most]
    return {"bytes": whole, "blocks": blocks, "sites": named}


def _line(frames):
    """`train.py:27`, of the innermost frame that is no library's."""
    own = [frame for frame in frames if not any([part in frame[0] for part in OF_OTHERS])]
    place, number = (own or frames)[0]
    return "%s:%d" % (place.rpartition("/")[2], number)
