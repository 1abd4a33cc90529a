"""Loads a library late that wants so many bytes of thread-local storage at a fixed place."""

import ctypes
import subprocess
import sys

SOURCE = """
static __thread char storage[SIZE] __attribute__((tls_model("initial-exec")));
char *touch(void) { storage[0] = 1; return storage; }
"""

if __name__ == "__main__":
    size, folder = sys.argv[1:]
    library = folder + "/libtls.so"
    build = ["cc", "-shared", "-fPIC", f"-DSIZE={size}", "-x", "c", "-", "-o", library]
    subprocess.run(build, input=SOURCE.encode(), check=True)
    print("loaded", ctypes.CDLL(library).touch is not None)
