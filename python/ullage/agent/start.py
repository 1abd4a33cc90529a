"""Which parts of the agent does a Python of the job load as it starts? Run by sitecustomize.py, with `here`, its
folder, and `parts`, the byte code of this version of Python that lies there.

To parse the agent at each start, or to open file after file, would cost more than it may. So the byte code of all that
a start needs lies in one file. The command makes it of what is installed beside it (agent_code.rs). For another version
of Python its first process does, whatever PYTHONDONTWRITEBYTECODE says: it is ullage's own folder.
"""

import sys

here, parts = globals()["here"], globals()["parts"]
AT_START = ("start", "common", "counts", "agent", "safe_points", "hooks")  # each after those that it imports
SOON = ("processes", "loaders", "facts", "memory", "tensors", "kinds")  # kept as bytes until they are needed
# As they are now: what the program puts in the place of `open` or `len`, a test's mock for instance, is not for us.
BUILTINS = dict(sys.modules["builtins"].__dict__)


def _compiled(name, path):
    kept = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = False, None
    try:
        return sys.modules["_frozen_importlib_external"].SourceFileLoader(name, path).get_code(name)
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = kept


def _load(name):
    code = parts.pop(name, None) or _compiled("_ullage_" + name, here + "/ullage_" + name + ".py")
    if type(code) is bytes:
        code = sys.modules["marshal"].loads(code)
    if name not in AT_START:
        # What it imports is there before it: the import system, whose locks the program may hold, has nothing to find.
        for one in code.co_names:
            if one.startswith("_ullage_") and one not in sys.modules:
                _load(one[len("_ullage_") :])
    module = sys.modules["_ullage_" + name] = type(sys)("_ullage_" + name)
    module.__builtins__ = BUILTINS
    exec(code, module.__dict__)
    return module


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
    """For the Pythons that start after this one. Complete or not there at all, since two may do it at once."""
    import posix

    files = sys.modules["_frozen_importlib_external"]
    _compiled("sitecustomize", here + "/sitecustomize.py")
    for name in AT_START + SOON:
        path = here + "/ullage_" + name + ".py"
        loader = files.SourceFileLoader(name, path)
        # Without docstrings: a fifth of what is to be read at each start.
        code = loader.source_to_code(loader.get_data(path), path, _optimize=2)
        parts[name] = code if name in AT_START else sys.modules["marshal"].dumps(code)
    target = here + "/" + files.MAGIC_NUMBER.hex()
    written = target + "." + str(posix.getpid())
    fd = posix.open(written, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    data = sys.modules["marshal"].dumps(parts)
    try:
        whole = posix.write(fd, data) == len(data)
    finally:
        posix.close(fd)
    if not whole:
        return posix.unlink(written)
    posix.rename(written, target)


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
    _load("counts")
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
