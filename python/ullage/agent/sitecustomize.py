# Puts ullage's agent into a Python of the job, then runs the program's own `sitecustomize` as if this file
# were not there.
#
# `ullage run` writes this file and its neighbours (agent.py as ullage_agent.py and so on, so that no module of the
# program is shadowed) into a private directory and puts it first on PYTHONPATH.
# Everything here must also parse on Python 2 (any Python of the job imports it), and nothing here may raise
# what CPython would not have raised by itself: without a sitecustomize of the user's, `import sitecustomize`
# below raises the very ImportError that site.py expects and swallows.
import sys


def _start():
    here = __file__.rpartition("/")[0]
    # Out of sys.path before anything else is looked up; os.environ keeps it for the children.
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    if sys.version_info < (3, 9) or sys.implementation.name != "cpython":
        return
    import posix

    if posix.environ.get(b"ULLAGE_DISABLE") == b"1" or not posix.environ.get(b"ULLAGE_AGENT_SOCKET"):
        return
    _load("_ullage_counts", here + "/ullage_counts.py")
    agent = _load("_ullage_agent", here + "/ullage_agent.py")
    hooks = _load("_ullage_hooks", here + "/ullage_hooks.py")
    if agent.start():
        # Needed late and seldom: a start pays for nothing of it.
        hooks.install(lambda name: _load("_ullage_" + name, here + "/ullage_" + name + ".py"))


def _load(name, path):
    # Compiled once, beside this file: to parse the agent at each start would cost more than it may.
    kept = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = False, None
    try:
        code = sys.modules["_frozen_importlib_external"].SourceFileLoader(name, path).get_code(name)
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = kept
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
    return module


_SELF = sys.modules.pop(__name__)  # Python 2 clears a module that nobody holds while it still runs.
try:
    _start()
except Exception:  # the job goes on without the agent
    pass

import sitecustomize  # noqa: F401  the next one on the path
