"""The instructions of code objects, beside what `dis` of each Python says of them."""

from test_agent_weight import told

# Compared: what says what is done, and to what. Jumps and comparisons are numbers here and something else there.
COMPARED = """
import types
load = agent_parts.common.__globals__["load"]
steps = load("steps")
assert "opcode" not in sys.modules and "dis" not in sys.modules
before = list(steps.names())
assert "opcode" not in sys.modules and "dis" not in sys.modules
import argparse, ast, asyncio, collections, dataclasses, dis, enum, json, opcode, subprocess, tarfile, typing
named = [one for one in range(256) if opcode.opname[one][0] != "<"]
NOTHING = ("EXTENDED_ARG", *steps._NOTHING)

def codes(code):
    yield code
    for one in code.co_consts:
        if type(one) is types.CodeType:
            yield from codes(one)

def lines(code):
    number, starts = code.co_firstlineno, dict(dis.findlinestarts(code))
    for step in dis.get_instructions(code):
        number = starts.get(step.offset) or number
        if step.opname not in NOTHING:
            yield step, number

count, wrong = 0, []
for module in (argparse, ast, asyncio.base_events, collections, dataclasses, dis, enum, subprocess, tarfile, typing):
    with open(module.__file__) as file:
        whole = compile(file.read(), module.__file__, "exec")
    for code in codes(whole):
        theirs = list(lines(code))
        ours = steps.of(code)
        count += len(ours)
        if len(ours) != len(theirs):
            wrong.append((code.co_name, len(ours), len(theirs)))
            continue
        for one, (other, line) in zip(ours, theirs):
            whole = ("JUMP", "FOR_ITER", "SETUP_", "COMPARE_OP", "SEND", "END_ASYNC", "BINARY_OP", "CALL_INTR", "FORMAT")
            whole += ("SET_FUNCTION", "IS_OP", "CONTAINS_OP", "CONVERT_VALUE", "MAKE_FUNCTION", "KW_NAMES", "LOAD_COMMON", "LOAD_SPECIAL")
            named_alike = other.arg is None or any([part in one.opname for part in whole]) or one.argval == other.argval
            subscripts = other.opname == "BINARY_SUBSCR" or other.opname == "BINARY_OP" and other.argrepr == "[]"
            arg = one.arg if other.arg is None else other.arg
            subscripts = subscripts, other.opname == "COMPARE_OP" and other.argval in ("==", "!=")
            if (one.opname, one.arg, one.line, (one.subscripts, one.equals)) != (other.opname, arg, line, subscripts):
                wrong.append((code.co_name, one.opname, one.arg, one.line, other.opname, other.arg, line))
            elif not named_alike:
                wrong.append((code.co_name, one.opname, str(one.argval), str(other.argval)))
alike = [before[one] == opcode.opname[one] for one in named]
say(count=count, wrong=wrong[:20], alike=all(alike))
"""


def test_instructions_are_those_of_dis_whether_or_not_it_is_loaded(python, script):
    said = told(python, script, COMPARED)
    assert said["count"] > 10_000
    assert (said["wrong"], said["alike"]) == ([], True)


def test_where_the_library_lies_elsewhere_what_the_program_has_loaded_is_asked(python, script):
    program = """
steps = agent_parts.common.__globals__["load"]("steps")
import os
os.__file__ = "/nonexistent/os.py"
before = [steps.names(), steps.of(compile("a = 1", "a.py", "exec"))]
import opcode
say(before=before, after=steps.names() == opcode.opname)
"""
    assert told(python, script, program) == {"before": [[], []], "after": True}
