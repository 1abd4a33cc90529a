"""Which modules, and which files, are the program's own? Those that neither Python brought, nor an installed library,
nor ullage.

The surprise: a program has thousands of modules, and to ask each for its file in Python counts references to it, in
pages that forked workers share: megabytes in each of them. So libraries' are only read (python/agent, modules.rs).
"""

import sys

import _ullage_common as common
import _ullage_kinds as types

OURS = "ullage_"
_LIBRARIES = "/site-packages/", "/dist-packages/", OURS
_PYTHONS_OWN = "<", *["%s/lib/python%d.%d/" % (one, *sys.version_info[:2]) for one in (sys.prefix, sys.base_prefix)]


def is_program_file(file):
    """Neither Python's, nor an installed library's, nor ours."""
    return not file.startswith(_PYTHONS_OWN) and not any([part in file for part in _LIBRARIES])


def is_program(module):
    """The main module, or one of a file of the program's own."""
    if type(module) is not types.ModuleType:
        return False
    file = module.__dict__.get("__file__")
    return name_in(module.__dict__) == "__main__" or type(file) is str and is_program_file(file)


def of_program(libraries=_LIBRARIES, pythons_own=_PYTHONS_OWN):
    """(name, module) of all for which `is_program` holds, or of those whose file neither has such a part nor begins
    so."""
    found = common.native.program_modules(sys.modules, libraries, pythons_own) or []
    return list(zip(found[::2], found[1::2]))


def leading(wanted, passed_by, seconds):
    """Modules of which a global is an object of one of these ids, or refers to one of them, or has it among its
    attributes. `passed_by`: exact types that are not gone into."""
    return common.native.leading(sys.modules, tuple(wanted), passed_by, int(seconds * 1e9)) or []


def with_names(names):
    """The module whose namespace this dict is; None where it is of none."""
    return common.native.module_with(sys.modules, names)


def name_in(names):
    """What a module is called, by its namespace."""
    name = dict.get(names, "__name__")
    return name if type(name) is str else ""
