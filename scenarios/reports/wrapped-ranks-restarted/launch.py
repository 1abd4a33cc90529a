"""Starts the ranks of this node, watches them, and starts all of them anew when one of them fails"""

import os
import select
import signal
import subprocess
import sys

import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))
LOCAL_WORLD_SIZE, MAX_RESTARTS = 2, 4


class SubprocessHandler:
    """One rank"""

    def __init__(self, entrypoint, environment):
        self.process = subprocess.Popen(entrypoint, env={**os.environ, **environment})
        self.pidfd = os.pidfd_open(self.process.pid)

    def close(self, death_signal=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(death_signal)
        self.process.wait()
        os.close(self.pidfd)


class LocalElasticAgent:
    def __init__(self, entrypoint):
        self.entrypoint = entrypoint
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.handlers = []

    def start_workers(self, restart_count):
        self.handlers = []
        for rank in range(LOCAL_WORLD_SIZE):
            environment = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(LOCAL_WORLD_SIZE),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.store.port),
                "TORCHELASTIC_RESTART_COUNT": str(restart_count),
            }
            self.handlers.append(SubprocessHandler(self.entrypoint, environment))

    def stop_workers(self):
        for handler in self.handlers:
            handler.close()

    def monitor_workers(self):
        """Waits until a rank has failed, or all have ended; the status"""
        poll = select.poll()
        running = {handler.pidfd: handler for handler in self.handlers}
        for pidfd in running:
            poll.register(pidfd, select.POLLIN)
        while running:
            for pidfd, _ in poll.poll():
                status = running.pop(pidfd).process.wait()
                poll.unregister(pidfd)
                if status:
                    return status
        return 0

    def run(self):
        for restart_count in range(MAX_RESTARTS + 1):
            self.start_workers(restart_count)
            status = self.monitor_workers()
            self.stop_workers()
            if status == 0:
                return 0
            print(f"a rank ended with {status}, restart {restart_count + 1} of {MAX_RESTARTS}", flush=True)
        return 1


def main():
    return LocalElasticAgent(["bash", os.path.join(HERE, "rank.sh"), sys.executable]).run()


if __name__ == "__main__":
    sys.exit(main())
