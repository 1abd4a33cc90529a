"""Fails as a program does to which the kernel gave no memory, though it holds little."""

import errno
import os
import time

held = b"\1" * (40 << 20)
time.sleep(2)
raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
