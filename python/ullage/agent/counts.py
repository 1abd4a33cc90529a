"""What stands around a Python process at the moment of a failure: mappings, descriptors, limits, memory,
/dev/shm, as the kernel counts them (proc_pid_maps(5), proc_pid_limits(5), statvfs(3)).

The surprise: the failure may be that nothing can be opened or mapped any more. So this opens one file at a
time, in the place of a descriptor that the caller has just closed, and reads into a buffer made beforehand.
What cannot be counted is left out.
"""

import posix
import sys

import _ullage_common as common


_buffer = bytearray(1 << 16)
_buffers = [_buffer]

# As CPython itself reads them: no property of the program's runs.
_FILE_NAME = OSError.__dict__["filename"].__get__
_TRACEBACK, _CONTEXT = [BaseException.__dict__[name].__get__ for name in ("__traceback__", "__context__")]


def _read(path, most=1 << 16):
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, most)
    finally:
        posix.close(fd)


def take(error, release, restore, own, ends):
    """All counts by the names of the model; `release` frees one descriptor, `restore` takes it again. `own`: the
    descriptor of the agent's connection; `ends`: whether the process does."""
    counts = {}
    release()
    try:
        try:
            _count_descriptors(counts, own)
        except Exception:
            pass
        for count in (_count_mappings, _count_limits, _count_memory, _count_files):
            try:
                count(counts, error)
            except Exception:
                pass
    finally:
        restore()
    try:
        counts["tensors"] = _count_tensors(ends)
    except Exception:
        pass
    return counts


def _count_descriptors(counts, own):
    fd = posix.open("/proc/self/fd", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        # Before Linux 6.2 the size is 0. Ours is open and the reserve closed: the sum is as before.
        total = posix.fstat(fd).st_size
        if not total:
            total = len(posix.listdir(fd))
        counts["fds"] = total
        torch, seen, places = 0, 0, {}
        # Ours first: it lies far above the program's, and each number up to it is a call.
        number, following = own, 0
        while seen < total and following < total * 2 + 4096:
            try:
                link = posix.readlink(str(number), dir_fd=fd)
            except OSError:
                pass
            else:
                seen += 1
                if _is_torch_segment(link):
                    torch += 1
                place = _place(link)
                if place in places or len(places) < _MOST_PLACES:
                    places[place] = places.get(place, 0) + 1
            following += following == own
            number, following = following, following + 1
        counts["fds_torch"] = torch
        most = sorted(places.items(), key=_number, reverse=True)[:3]
        counts["fd_places"] = [list(place) for place in most]
    finally:
        posix.close(fd)


# Folders that are counted: of a table that is full, the few that fill it come early.
_MOST_PLACES = 256


def _number(place):
    return place[1]


def _place(link):
    """Where a descriptor leads: the folder of a file, or the kind of what is none (`socket`, `pipe`, `anon_inode`)."""
    if link.startswith("/"):
        return link[: link.rfind("/") + 1]
    return link[: link.find(":")]


def _is_torch_segment(path):
    return path.startswith("/dev/shm/torch_") or (path.startswith("/torch_") and path[7:8].isdigit())


def _count_mappings(counts, _error):
    fd = posix.open("/proc/self/maps", posix.O_RDONLY | posix.O_CLOEXEC)
    mappings = torch = torch_bytes = 0
    tail = b""
    try:
        while True:
            length = posix.readv(fd, _buffers)
            if not length:
                break
            chunk = tail + bytes(memoryview(_buffer)[:length])
            end = chunk.rfind(b"\n") + 1
            tail = chunk[end:]
            mappings += chunk.count(b"\n")
            if chunk.find(b"[vsyscall]") >= 0:  # listed, and not counted by the kernel
                mappings -= 1
            if chunk.find(b"/torch_") < 0:
                continue
            for line in chunk[:end].split(b"\n"):
                path = line.find(b"/")
                if path < 0:
                    continue
                if line.startswith(b"/dev/shm/torch_", path) or (
                    line.startswith(b"/torch_", path) and line[path + 7 : path + 8].isdigit()
                ):
                    low, _, high = line[: line.find(b" ")].partition(b"-")
                    torch += 1
                    torch_bytes += int(high, 16) - int(low, 16)
    finally:
        posix.close(fd)
    counts["mappings"] = mappings
    counts["mappings_torch"] = torch
    counts["mappings_torch_bytes"] = torch_bytes


def _count_limits(counts, _error):
    names = {
        b"Max open files": ("nofile", "nofile_hard"),
        b"Max address space": ("address_space_limit", None),
        b"Max processes": ("nproc", None),
    }
    for line in _read("/proc/self/limits").split(b"\n"):
        wanted = names.get(line[:26].strip())
        if wanted is not None:
            for field, value in zip(wanted, line[26:].split()):
                if field is not None and value.isdigit():
                    counts[field] = int(value)
    counts["max_map_count"] = int(_read("/proc/sys/vm/max_map_count"))


def _count_memory(counts, _error):
    for line in _read("/proc/self/status").split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"VmSize":
            counts["virtual_size"] = int(value.split()[0]) * 1024
        elif name == b"VmRSS":
            counts["resident"] = int(value.split()[0]) * 1024
        elif name == b"Threads":
            counts["threads"] = int(value) - _of_the_agent()
    for line in _read("/proc/meminfo").split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"Committed_AS":
            counts["committed"] = int(value.split()[0]) * 1024
        elif name == b"CommitLimit":
            counts["commit_limit"] = int(value.split()[0]) * 1024


def _of_the_agent():
    """Threads: the one that counts, and the one that sleeps."""
    if common.native is None:
        return 0
    return int(common.native.caller() != sys.modules["_thread"].get_ident()) + common.native.wakes()


def _count_files(counts, error):
    try:
        shm = posix.statvfs("/dev/shm")
        counts["shm_used"] = (shm.f_blocks - shm.f_bfree) * shm.f_frsize
        counts["shm_size"] = shm.f_blocks * shm.f_frsize
        counts["shm_inodes_used"] = shm.f_files - shm.f_ffree
        counts["shm_inodes"] = shm.f_files
    except OSError:
        pass
    directory = common.names("tempfile").get("tempdir")
    if type(directory) is str and directory:
        try:
            place = posix.statvfs(directory)
            counts["tmp_free"] = place.f_bavail * place.f_frsize
        except OSError:
            pass
    path = _FILE_NAME(error) if issubclass(type(error), OSError) else _written_by_torch(error)
    if type(path) is bytes:
        path = path.decode("utf-8", "replace")
    if type(path) is not str or not path:
        return
    counts["path"] = path[:1000]
    while path:
        try:
            place = posix.statvfs(path)
        except OSError:
            # The file itself may not exist: its directory tells as well.
            parent = path.rstrip("/").rpartition("/")[0]
            path = parent or ("/" if path.startswith("/") and path != "/" else "." if path != "." else "")
            if path == "/" and not parent and counts.get("path_free") is None:
                place = posix.statvfs("/")
            else:
                continue
        counts["path_free"] = place.f_bavail * place.f_frsize
        counts["path_inodes_free"] = place.f_favail
        break


def _written_by_torch(error):
    """The file that torch.save was writing: of a full disk its writer says "unexpected pos", and no path."""
    seen = set()  # what came of itself has no end
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback = _TRACEBACK(error)
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_name == "save" and code.co_filename.endswith("/torch/serialization.py"):
                path = dict(common.locals_of(traceback.tb_frame)).get("f")
                plain = type(path) is str or type(path) is common.names("pathlib").get("PosixPath")
                return str(path) if plain else None
            traceback = traceback.tb_next
        error = _CONTEXT(error)
    return None


def _count_tensors(ends):
    tensor = common.names("torch").get("Tensor")
    if tensor is None or common.native is None:
        return None
    parameter = common.names("torch.nn").get("Parameter", tensor)
    found = common.standing((tensor, parameter), 1, ends=ends)
    return None if found is None else found[1] + found[3]
