"""The job `sharing` captured: pages, mappings, descriptors and segments of a parent and two forked children."""

import json
import os

from fixture import wait_for
from guest import finish, job, read, start

UID = 1000
FOLDER = "/tmp/sharing"


def shared_pages(fixture, enter):
    """Fills `fixture`, and `fixture.facts` for truth.json; `enter` moves a pid into the group to run in."""
    os.makedirs(FOLDER, exist_ok=True)
    os.chmod(FOLDER, 0o777)
    process = start(job("sharing", f"{FOLDER}/truth", UID, 256), enter=enter)
    try:
        wait_for(f"{FOLDER}/truth")
        truth = json.loads(read(f"{FOLDER}/truth"))
        pids = {name: about["pid"] for name, about in truth["processes"].items()}
        fixture.machine()
        fixture.take("/proc/self/mountinfo")
        for pid in pids.values():
            fixture.process(pid)
            fixture.descriptors(pid)
            fixture.pagemap(pid)
        fixture.shared_memory()
        about = os.statvfs("/dev/shm")
        free, used = about.f_bavail, about.f_blocks - about.f_bfree
        shm = {"block": about.f_frsize, "blocks": about.f_blocks, "used": used, "free": free, "files": about.f_files,
               "files_free": about.f_ffree}  # fmt: skip
        fixture.facts = {"main": pids["parent"], "uid": UID, "shm": shm, **truth}
        rollups = {name: read(f"/proc/{pid}/smaps_rollup") for name, pid in pids.items()}
    finally:
        os.killpg(process.pid, 9)
        finish(process, 10)
        for name in os.listdir("/dev/shm"):
            if name.startswith("sharing-"):
                os.unlink(f"/dev/shm/{name}")
        os.unlink(f"{FOLDER}/truth")
    taken, base = fixture.artifacts, f"fixture/{fixture.label}/proc"
    yield "the pages of all three are there", all(taken.get(f"{base}/{pid}/pagemap.runs") for pid in pids.values())
    yield "the kernel tells shared from own pages", all("Private_Dirty" in text for text in rollups.values())
    yield "the segments are in maps", b"SYSV" in taken[f"{base}/{pids['parent']}/maps"]
