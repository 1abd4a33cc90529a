"""Types that have no name of their own among the built-in ones, as `types` finds them.

Not imported from there: the program may be in the midst of importing it, and would be waited for (python/agent).
"""

import sys


def _function():
    yield


class _Slots:
    __slots__ = ("one",)

    def method(self):
        pass


FunctionType = type(_function)
CodeType = type(_function.__code__)
GeneratorType = type(_function())
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
