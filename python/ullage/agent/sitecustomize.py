# Puts ullage's agent into a Python of the job, then runs the program's own `sitecustomize` as if this file
# were not there.
#
# `ullage run` writes this file and its neighbours (agent.py as ullage_agent.py and so on, so that no module of the
# program is shadowed) into a private directory and puts it first on PYTHONPATH.
# Everything here must also parse on Python 2 (any Python of the job imports it), and nothing here may raise
# what CPython would not have raised by itself: without a sitecustomize of the user's, `import sitecustomize`
# below raises the very ImportError that site.py expects and swallows.
import sys

_SELF = sys.modules.pop(__name__)  # Python 2 clears a module that nobody holds while it still runs.
try:
    _here = __file__.rpartition("/")[0]
    # Out of sys.path before anything else is looked up; os.environ keeps it for the children.
    sys.path[:] = [entry for entry in sys.path if entry != _here]
    sys.path_importer_cache.pop(_here, None)
    if sys.version_info >= (3, 9) and sys.implementation.name == "cpython":
        _files = sys.modules["_frozen_importlib_external"]
        _posix = sys.modules["posix"]  # a tenth of a millisecond less than open()
        try:
            # The parts that each start needs: see start.py.
            _file = _posix.open(_here + "/" + _files.MAGIC_NUMBER.hex(), _posix.O_RDONLY | _posix.O_CLOEXEC)
            try:
                _data = _posix.read(_file, _posix.fstat(_file).st_size)
            finally:
                _posix.close(_file)
            _parts = sys.modules["marshal"].loads(_data)
            _place, _size = _parts.pop("start")
            _code = sys.modules["marshal"].loads(memoryview(_data)[-_place:][:_size])
        except (OSError, EOFError, TypeError, ValueError, KeyError):
            _parts, _data = {}, b""
            _code = _files.SourceFileLoader("start", _here + "/ullage_start.py").get_code("start")
        exec(_code, {"__name__": "_ullage_start", "here": _here, "parts": _parts, "data": _data})
except Exception:  # the job goes on without the agent
    pass

if sys.version_info[0] > 2:
    del _SELF  # no circle: a program that looks for garbage finds none of ours

import sitecustomize  # noqa: F401  the next one on the path
