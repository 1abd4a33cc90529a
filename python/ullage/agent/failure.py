"""What is told of an exception that leaves a Python: its text, its frames, what it came of, and what stood around it.

Read as CPython itself reads them: no code of the job runs. Loaded when a program has time to grow, and otherwise at the
exception itself: of byte code that is there since the start, since a program at a limit may have nothing to open.
"""

import _ullage_common as common
import _ullage_counts as counts

MAX_TEXT = 2000
MAX_FRAMES = 40
MAX_CHAIN = 8
MAX_NAME = 300


def describe(error, release, restore, own, ends):
    """The message, but for where the exception left; the others: see counts.take."""
    code = _ERRNO(error) if issubclass(type(error), OSError) else None
    return {
        "kind": "exception",
        "type_name": _NAME(type(error))[:MAX_NAME],
        "errno": code if type(code) is int else None,
        "counts": counts.take(error, release, restore, own, ends),
        "text": text(error),
        "stack": _stack(_TRACEBACK(error)),
        "chain": _chain(error),
        "start_method": _start_method(),
        "torch": common.plain(common.names("torch").get("__version__")),
        "cuda_initialized": _cuda_initialized(),
    }


_HIDDEN = object()


def _plain_argument(one, depth):
    if id(type(one)) in _PLAIN:
        return one
    if issubclass(type(one), str):
        return str.__str__(one)
    # One in another, and no further: an exception may be an argument of itself.
    return text(one, depth - 1) if depth and issubclass(type(one), BaseException) else _HIDDEN


# By their ids: among the types themselves one of the program's would be compared, by code of its own type.
_PLAIN = frozenset(map(id, (str, int, float, bool, bytes, type(None))))


def text(error, depth=1):
    """By the built-in type's own function, where all that it shows is of built-in types: no code of the job runs, which
    may have its effects twice then, or end the job."""
    shown = [_DICT(base).get("__str__") for base in _MRO(type(error))]
    shown = [one for one in shown if type(one) is _SLOT][0]
    arguments = BaseException.args.__get__(error)
    plain = [_plain_argument(one, depth) for one in arguments]
    if any([one is _HIDDEN for one in plain]) or not _shows_plain(error):
        return ""
    try:
        if all([one is other for one, other in zip(plain, arguments)]):
            said = shown(error)
        else:
            said = str(plain[0]) if len(plain) == 1 else repr(tuple(plain))
    except ValueError:
        return ""  # a number of too many digits
    # The traceback of another process has its cause at its end.
    return said if len(said) <= MAX_TEXT else said[: MAX_TEXT // 2] + said[-MAX_TEXT // 2 :]


def _shows_plain(error):
    """What the built-in types' own functions show beside the arguments."""
    shown = [read(error) for kind, parts in _SHOWN if issubclass(type(error), kind) for read in parts]
    path = common.names("pathlib").get("PosixPath")
    return all([id(type(one)) in _PLAIN or type(one) is path for one in shown])


_SLOT = type(BaseException.__str__)


def _read_by(kind, name):
    """What CPython itself reads an attribute by: no property, `__getattribute__` or metaclass of the program's runs."""
    return kind.__dict__[name].__get__


_TRACEBACK, _CAUSE = _read_by(BaseException, "__traceback__"), _read_by(BaseException, "__cause__")
_CONTEXT, _SUPPRESSED = _read_by(BaseException, "__context__"), _read_by(BaseException, "__suppress_context__")
_ERRNO = _read_by(OSError, "errno")
_SHOWN = (
    (OSError, [_read_by(OSError, name) for name in ("errno", "strerror", "filename", "filename2")]),
    (SyntaxError, [_read_by(SyntaxError, name) for name in ("msg", "filename", "lineno")]),
    (UnicodeDecodeError, [_read_by(UnicodeDecodeError, name) for name in ("encoding", "reason")]),
    (UnicodeEncodeError, [_read_by(UnicodeEncodeError, name) for name in ("encoding", "reason")]),
    (UnicodeTranslateError, [_read_by(UnicodeTranslateError, "reason")]),
)
_NAME, _MRO, _DICT = _read_by(type, "__name__"), _read_by(type, "__mro__"), _read_by(type, "__dict__")


def _stack(traceback):
    """The outermost and the innermost ones; of a recursion without end there are millions."""
    number, last = 0, traceback
    while last is not None:
        number, last = number + 1, last.tb_next
    frames = []
    for place in range(number):
        if place < 10 or place >= number - (MAX_FRAMES - 10):
            code = traceback.tb_frame.f_code
            frames.append("%s:%s %s" % (code.co_filename[-MAX_NAME:], traceback.tb_lineno, code.co_name[:MAX_NAME]))
        traceback = traceback.tb_next
    return frames


def _chain(error):
    chain, seen = [], {id(error)}
    while len(chain) < MAX_CHAIN:
        following = _CAUSE(error)
        if following is None and not _SUPPRESSED(error):
            following = _CONTEXT(error)
        if following is None or id(following) in seen:
            break
        error = following
        seen.add(id(error))
        chain.append("%s: %s" % (_NAME(type(error))[:MAX_NAME], text(error)))
    return chain


def _start_method():
    # Read from the attributes: get_start_method() without allow_none would fix the default for good.
    context = common.names("multiprocessing.context").get("_default_context")
    actual = getattr(context, "_actual_context", None)
    return common.plain(getattr(actual, "_name", None))


def _cuda_initialized():
    value = common.names("torch.cuda").get("_initialized")
    return value if type(value) is bool else None
