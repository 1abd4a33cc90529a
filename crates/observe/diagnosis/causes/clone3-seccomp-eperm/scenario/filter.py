"""Becomes COMMAND under a seccomp filter that answers clone3 with an error: `filter.py ERRNO COMMAND...`."""

import ctypes
import os
import struct
import sys

CLONE3 = 435
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# Load the number; if it is clone3, the error; else allow.
program = b"".join(
    struct.pack("HBBI", *line)
    for line in [
        (0x20, 0, 0, 0),
        (0x15, 0, 1, CLONE3),
        (0x06, 0, 0, ERRNO | int(sys.argv[1])),
        (0x06, 0, 0, ALLOW),
    ]
)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
filter = Program(len(program) // 8, program)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter)):
    raise OSError(ctypes.get_errno(), "prctl")
os.execvp(sys.argv[2], sys.argv[2:])
