"""Makes so many empty files in the working directory, looks at each, and removes them."""

import os
import shutil
import sys
import time

os.mkdir("samples")
for number in range(int(sys.argv[1])):
    os.close(os.open(f"samples/{number}", os.O_CREAT | os.O_WRONLY))
with os.scandir("samples") as entries:
    print(sum(entry.stat().st_size for entry in entries))
time.sleep(2)
shutil.rmtree("samples")
