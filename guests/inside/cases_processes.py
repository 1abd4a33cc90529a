from registry import case
@case("hello")
def hello(artifacts):
    import multiprocessing, subprocess
    out = subprocess.run(["python3","-c","import multiprocessing,ctypes,resource,mmap,socket;print('hi')"],capture_output=True,text=True)
    yield "python runs", out.stdout=="hi\n", out.stderr
    import os
    yield "cgroup", "memory" in open("/sys/fs/cgroup/cgroup.controllers").read(), open("/proc/meminfo").read()[:300]
