"""Types that have no name of their own among the built-in ones, as `types` finds them.

Not imported from there: the program may be in the midst of importing it, and would be waited for (python/agent).

And what an object is, read as CPython itself reads it. The surprise: a class may have a class of the program's, whose
code runs where the class is compared or hashed, as in `kind in (list, dict)`, or asked for its name. So types are
compared by `is`, looked up by `id`, and asked through the functions below.
"""

import gc
import sys


def _function():
    yield


async def _coroutine():
    pass


async def _async_generator():
    yield


class _Slots:
    __slots__ = ("one",)

    def method(self):
        pass


FunctionType = type(_function)
CellType = type((lambda value: lambda: value)(None).__closure__[0])
CodeType = type(_function.__code__)
GeneratorType = type(_function())
_waiting = _coroutine()
CoroutineType = type(_waiting)
_waiting.close()
AsyncGeneratorType = type(_async_generator())
BuiltinFunctionType = type(len)
MethodType = type(_Slots().method)
ModuleType = type(sys)
MappingProxyType = type(type.__dict__)
GetSetDescriptorType = type(FunctionType.__dict__["__code__"])
MemberDescriptorType = type(_Slots.__dict__["one"])
try:
    raise KeyError
except KeyError as error:
    TracebackType = type(error.__traceback__)
    FrameType = type(error.__traceback__.tb_frame)


def ids(*kinds):
    """For `id(type(one)) in ...`; of types that live for good."""
    return frozenset([id(kind) for kind in kinds])


def with_sizes(*kinds):
    """Each type, and behind it its `__sizeof__`, as python/agent takes them."""
    return tuple([one for kind in kinds for one in (kind, kind.__sizeof__)])


mro = type.__dict__["__mro__"].__get__
namespace = type.__dict__["__dict__"].__get__
qualified_name = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__


# What a coroutine or generator waits for, and its code.
_AWAITED = {
    id(kind): tuple([namespace(kind)[name].__get__ for name in names])
    for kind, names in (
        (CoroutineType, ("cr_await", "cr_code")),
        (GeneratorType, ("gi_yieldfrom", "gi_code")),
        (AsyncGeneratorType, ("ag_await", "ag_code")),
    )
}
_AROUND = ("async_generator_asend", "anext_awaitable", "coroutine_wrapper")  # of what is awaited, by their names
MOST_AWAITED, MOST_AROUND = 32, 2  # of a chain of coroutines, and around one of them
# Ends of files, and functions in them, in which a task waits until something comes.
_FOR_WORK = (
    ("asyncio/queues.py", ("get",)),
    ("asyncio/locks.py", ("wait",)),  # an Event's, a Condition's
    ("asyncio/streams.py", ("_wait_for_data",)),
    ("anyio/streams/memory.py", ("receive",)),
)
_FOR_ROOM = ("get_connection", "wait_for_connection", "wait_for_available_connection")


def module_of(kind):
    try:
        module = _module(kind)
    except AttributeError:  # its body deleted the name
        return ""
    return module if type(module) is str else ""


def type_name(kind):
    name, module = qualified_name(kind), module_of(kind)
    return name if module == "builtins" else "%s.%s" % (module, name)


def attributes_of(value):
    """The dict of an instance; made here where it was not there yet. None where it has none."""
    for base in mro(type(value)):
        found = namespace(base).get("__dict__")
        if found is not None:
            names = found.__get__(value) if type(found) is GetSetDescriptorType else None
            return names if issubclass(type(names), dict) else None
    return None


def of_class(kind, name):
    """What a class holds under a name, not bound to anything; None where it holds nothing."""
    for base in mro(kind):
        found = namespace(base).get(name)
        if found is not None:
            return found
    return None


def attribute(value, name):
    """What an instance or its class holds under a name: no property is asked."""
    names = attributes_of(value)
    found = None if names is None else dict.get(names, name)
    return of_class(type(value), name) if found is None else found


def waits(value, kind):
    """A task of asyncio's or a future that is not done, as it calls that itself."""
    state = of_class(kind, "_state")
    if type(state) is GetSetDescriptorType and module_of(state.__objclass__) == "_asyncio":
        return state.__get__(value) == "PENDING"
    if module_of(kind) != "concurrent.futures._base":
        return False
    state = attribute(value, "_state")
    return type(state) is str and state in ("PENDING", "RUNNING")


def is_task(kind):
    """One of asyncio's, of C: it can be referred to weakly."""
    return type_name(kind) == "_asyncio.Task"


def waits_for_work(task):
    """Until something comes: an item, a message, an event. Not in a function by which something is acquired, such as a
    semaphore or a connection; nor for what it has given to an executor."""
    awaited, found = of_class(type(task), "_coro").__get__(task), False
    for _ in range(MOST_AWAITED):
        for _ in range(MOST_AROUND):
            if module_of(type(awaited)) == "builtins" and qualified_name(type(awaited)) in _AROUND:
                awaited = ([one for one in gc.get_referents(awaited) if _is_awaited(one)] or [None])[0]
        of = _AWAITED.get(id(type(awaited)))
        if of is None:
            break
        coroutine, code, awaited = awaited, of[1](awaited), of[0](awaited)
        name, file = code.co_name, code.co_filename
        if awaited is None or type(name) is not str or type(file) is not str:
            return False  # it has not begun, or runs
        if "acquire" in name or name.lstrip("_").startswith(_FOR_ROOM):
            return False
        found = found or any([name in names and file.endswith(end) for end, names in _FOR_WORK])
        if name == "wait_for" and file.endswith("asyncio/tasks.py"):
            awaited = _in_a_task_of(coroutine, awaited)
    return found


def _in_a_task_of(coroutine, awaited):
    """Up to CPython 3.11 asyncio.wait_for() has what it waits for in a task of its own."""
    parts = gc.get_referents(coroutine)
    parts += [one for part in parts if type(part) is FrameType for one in gc.get_referents(part)]
    tasks = [one for one in parts if is_task(type(one))]
    return of_class(type(tasks[0]), "_coro").__get__(tasks[0]) if tasks else awaited


def _is_awaited(value):
    kind = type(value)
    return id(kind) in _AWAITED or module_of(kind) == "builtins" and qualified_name(kind) in _AROUND
