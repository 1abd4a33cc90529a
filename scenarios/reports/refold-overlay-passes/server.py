"""The server that owns the store, over stdin and stdout: a watcher thread for each worktree does its passes"""

import concurrent.futures
import json
import queue
import sys
import threading

from store import create, migrate, refresh


class Watcher(threading.Thread):
    def __init__(self, path, worktree):
        super().__init__(name=f"watch-{worktree}", daemon=True)
        self.path, self.worktree = path, worktree
        self.requests = queue.SimpleQueue()
        self.start()

    def run(self):
        while (request := self.requests.get()) is not None:
            revision, answer = request
            try:
                answer.set_result(refresh(self.path, self.worktree, revision))
            except Exception as error:
                answer.set_exception(error)

    def ask(self, revision):
        answer = concurrent.futures.Future()
        self.requests.put((revision, answer))
        return answer.result()

    def stop(self):
        self.requests.put(None)
        self.join()


def main():
    path, worktrees = sys.argv[1], int(sys.argv[2])
    create(path)
    migrate(path)
    watchers = [Watcher(path, worktree) for worktree in range(worktrees)]
    print(json.dumps({"watching": worktrees}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        result = watchers[request["worktree"]].ask(request["revision"])
        print(json.dumps({"id": request["id"], "result": result}), flush=True)
    for watcher in watchers:
        watcher.stop()


if __name__ == "__main__":
    main()
