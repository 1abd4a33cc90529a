"""Which parts of the agent does a Python of the job load as it starts? Run by sitecustomize.py, with `here`, its
folder, and what lies there of byte code of this version of Python: `parts`, (bytes from the end, bytes) of each in
`data`.

To parse the agent at each start, or to open file after file, would cost more than it may. So the byte code of all that
a start needs lies in one file, with that of an exception's moment, at which nothing may be opened any more; that of a
first look lies in another. The command makes both of what is installed beside it (agent_code.rs). For another version
of Python its first process does, whatever PYTHONDONTWRITEBYTECODE says: it is ullage's own folder.
"""

import sys

here = globals()["here"]
AT_START = ("start", "common", "agent", "safe_points", "hooks")  # each after those that it imports
KEPT = ("counts", "failure", "kinds")  # beside them, until an exception leaves or there is time to look
SOON = ("processes", "loaders", "facts", "memory", "tensors")  # in the other file
# As they are now: what the program puts in the place of `open` or `len`, a test's mock for instance, is not for us.
BUILTINS = dict(sys.modules["builtins"].__dict__)


_loading = {}  # parts whose code runs, for a child that is forked by another thread meanwhile
_kept = None  # what the program wants of byte code, while parts are compiled
_compiling = 0  # threads that do so
_OURS = False, None


def _compiled(name, path):
    global _kept, _compiling
    if _kept is None:
        _kept = sys.dont_write_bytecode, sys.pycache_prefix
    _compiling += 1
    sys.dont_write_bytecode, sys.pycache_prefix = _OURS
    try:
        loader = sys.modules["_frozen_importlib_external"].SourceFileLoader(name, path)
        loader.set_data = _leave
        try:
            return loader.get_code(name)
        except (EOFError, TypeError, ValueError):  # byte code that was cut off behind its header
            return loader.source_to_code(loader.get_data(path), path)
    finally:
        _compiling -= 1
        if not _compiling:
            _restore()


def _restore():
    global _kept
    # Unless the program has set them meanwhile.
    if _kept is not None and (sys.dont_write_bytecode, sys.pycache_prefix) == _OURS:
        sys.dont_write_bytecode, sys.pycache_prefix = _kept
    _kept = None


def _after_fork():
    """What another thread had half loaded is not there."""
    global _compiling
    for whole, module in list(_loading.values()):
        if sys.modules.get(whole) is module:
            del sys.modules[whole]
    _loading.clear()
    _compiling = 0
    _restore()


def _leave(target, data, *, _mode=None):
    """CPython's own renames what a limit or a full disk has cut off, and no Python after it could load that."""
    try:
        _write(target, data)
    except OSError:
        pass


def _placed(places, data):
    return {name: (data, *places[name]) for name in places}


parts = _placed(globals().pop("parts"), globals().pop("data"))  # the last one that is taken lets go of `data`


def _load(name):
    if name in SOON and name not in parts:
        parts.update(_read_soon())
    part = parts.get(name)  # which stays until its code has run: who tries again may have no room to open a file
    if part is None:
        code = _compiled("_ullage_" + name, here + "/ullage_" + name + ".py")
    else:
        data, place, size = part
        try:
            # A view: each page that is touched anew costs 5 µs.
            code = sys.modules["marshal"].loads(memoryview(data)[-place:][:size])
        except (EOFError, TypeError, ValueError):  # it was cut off, and would be at each try
            parts.pop(name, None)
            code = _compiled("_ullage_" + name, here + "/ullage_" + name + ".py")
        del data, part
    if name not in AT_START:
        # What it imports is there before it: the import system, whose locks the program may hold, has nothing to find.
        for one in code.co_names:
            if one.startswith("_ullage_") and one not in sys.modules:
                _load(one[len("_ullage_") :])
    whole = "_ullage_" + name
    module = type(sys)(whole)
    key = id(module)
    try:
        _loading[key] = whole, module
        module.__builtins__ = BUILTINS
        found = sys.modules.setdefault(whole, module)
        if found is not module:  # another thread came first
            return found
        exec(code, module.__dict__)
        parts.pop(name, None)
    except BaseException:
        # Another look may have room for it. Nothing is called: there may be no room for a frame.
        if sys.modules.get(whole) is module:
            del sys.modules[whole]
        raise
    finally:
        _loading.pop(key, None)
    return module


def _soon():
    return here + "/" + sys.modules["_frozen_importlib_external"].MAGIC_NUMBER.hex() + ".soon"


def _read_soon():
    """Nothing where it cannot be opened."""
    import posix

    try:
        file = posix.open(_soon(), posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return {}
    try:
        data = posix.read(file, posix.fstat(file).st_size)
    finally:
        posix.close(file)
    return _placed(sys.modules["marshal"].loads(data), data)


def _native():
    # None where it cannot be loaded: a disk that forbids it, another libc, a Python without a global lock.
    if "t" in getattr(sys, "abiflags", ""):
        return None
    path = here + "/ullage_native.so"
    spec = sys.modules["_frozen_importlib"].ModuleSpec("_ullage_native", None, origin=path)
    try:
        module = sys.modules["_imp"].create_dynamic(spec)
    except ImportError as error:
        if "subinterpreter" in error.msg:  # CPython 3.12 and later, where each has a lock of its own
            raise
        return None
    if not module.is_main():
        raise ImportError("a subinterpreter")
    # faulthandler lists the extension modules that it finds there.
    sys.modules.pop("_ullage_native", None)
    return module


def _leave_parts():
    """For the Pythons that start after this one."""
    files, marshal = sys.modules["_frozen_importlib_external"], sys.modules["marshal"]
    _compiled("sitecustomize", here + "/sitecustomize.py")
    for names, target in ((AT_START + KEPT, here + "/" + files.MAGIC_NUMBER.hex()), (SOON, _soon())):
        codes = []
        for name in names:
            path = here + "/ullage_" + name + ".py"
            loader = files.SourceFileLoader(name, path)
            # Without docstrings: a fifth of what is to be read at each start.
            codes.append(marshal.dumps(loader.source_to_code(loader.get_data(path), path, _optimize=2)))
        # As agent_code.rs has them.
        sizes = [len(code) for code in codes]
        places = {name: (sum(sizes[at:]), sizes[at]) for at, name in enumerate(names)}
        data = marshal.dumps(places) + b"".join(codes)
        _write(target, data)
        if names is not SOON:
            parts.update(_placed(places, data))


def _write(target, data):
    """Complete or not there at all, since two may do it at once."""
    posix = sys.modules["posix"]  # not by what the program may have put in place of `__import__`
    try:
        posix.mkdir(target.rpartition("/")[0], 0o700)
    except FileExistsError:
        pass
    written = target + "." + str(posix.getpid())
    fd = posix.open(written, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    whole = False
    try:
        whole = posix.write(fd, data) == len(data)
    finally:
        posix.close(fd)
        if whole:
            posix.rename(written, target)
        else:
            posix.unlink(written)


def _start():
    import posix

    if posix.environ.get(b"ULLAGE_DISABLE") == b"1" or not posix.environ.get(b"ULLAGE_AGENT_SOCKET"):
        return
    if not parts:
        try:
            _leave_parts()
        except OSError:  # a full disk: each Python compiles for itself
            pass
    common = _load("common")
    common.begin(_load)
    common.in_child.append(_after_fork)
    try:
        started = _load("agent").start(_native)
    except ImportError:  # a subinterpreter is left alone: the library serves one, and has the main one's functions
        for name in [name for name in sys.modules if name.startswith("_ullage_")]:
            del sys.modules[name]
        return
    if started and common.native is not None:
        _load("safe_points").install()
        _load("hooks").install()


_start()
