"""A metrics exporter: how much memory the database's group of processes has"""

import os
import socket
import sys

PAGE = os.sysconf("SC_PAGE_SIZE")


def group(leader):
    """The leader and its children"""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if leader in (int(name), parent):
                yield int(name)


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def main():
    leader = int(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                pids = list(group(leader))
                total = sum(map(resident, pids))
                connection.sendall(f"process_group_count {len(pids)} process_group_rss_bytes {total}\n".encode())


if __name__ == "__main__":
    main()
