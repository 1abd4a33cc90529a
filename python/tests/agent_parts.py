"""The agent's parts by themselves, as a test or a program of one calls them.

Run by Pythons of every version: it imports nothing of the tests.
"""

import gc
import sys

AGENT = __file__.rpartition("/tests/")[0] + "/ullage/agent/"


def native(path):
    """python/agent."""
    if "_ullage_native" not in sys.modules:
        spec = sys.modules["_frozen_importlib"].ModuleSpec("_ullage_native", None, origin=str(path))
        sys.modules["_ullage_native"] = sys.modules["_imp"].create_dynamic(spec)
    return sys.modules["_ullage_native"]


def load(name):
    """As start.py does: before it what it imports."""
    with open(AGENT + name + ".py") as file:
        code = compile(file.read(), "/agent/ullage_" + name + ".py", "exec")
    for one in code.co_names:
        if one.startswith("_ullage_") and one not in sys.modules:
            load(one[len("_ullage_") :])
    module = sys.modules["_ullage_" + name] = type(sys)("_ullage_" + name)
    exec(code, module.__dict__)
    return module


def common(library):
    """What loads the others, with nothing hooked."""
    module = load("common")
    module.begin(load)
    module.use(native(library))
    module.native.collector(gc.enable, gc.disable, gc.isenabled)
    return module


def forget():
    for name in [name for name in sys.modules if name.startswith("_ullage_") and name != "_ullage_native"]:
        del sys.modules[name]
