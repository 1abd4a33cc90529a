"""The agent's parts by themselves, as a test or a program of one calls them: what they expect of each other is here.

Run by Pythons of every version: it imports nothing of the tests.
"""

import sys

AGENT = __file__.rpartition("/tests/")[0] + "/ullage/agent/"


def native(path):
    """python/agent."""
    if "_ullage_native" not in sys.modules:
        spec = sys.modules["_frozen_importlib"].ModuleSpec("_ullage_native", None, origin=str(path))
        sys.modules["_ullage_native"] = sys.modules["_imp"].create_dynamic(spec)
    return sys.modules["_ullage_native"]


def load(name):
    module = sys.modules["_ullage_" + name] = type(sys)("_ullage_" + name)
    with open(AGENT + name + ".py") as file:
        exec(compile(file.read(), "/agent/ullage_" + name + ".py", "exec"), module.__dict__)
    return module


def hooks(library):
    """In place of hooks.py, without what it hooks."""
    import gc

    module = sys.modules["_ullage_hooks"] = type(sys)("_ullage_hooks")
    load("kinds")
    module.native = native(library)
    module.native.collector(gc.enable, gc.disable, gc.isenabled)
    module.objects = lambda kinds=(), most=1, young=False: module.native.objects(
        gc.get_threshold(), 0 if young else -1, kinds, most
    )
    module.own_objects = lambda young=False: module.objects(young=young)[0]
    module.load = lambda name: sys.modules.get("_ullage_" + name) or load(name)
    module.weigher = lambda: module.load("weigh")
    return module


def forget():
    for name in [name for name in sys.modules if name.startswith("_ullage_") and name != "_ullage_native"]:
        del sys.modules[name]
