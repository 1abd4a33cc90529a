"""The jobs of a queue, in a file of SQLite"""

import sqlite3
import time


class Backend:
    def __init__(self, path):
        self.path = path
        self.database = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.database.execute(
            "create table if not exists jobs ("
            "id integer primary key, task text, feed text, state text, attempts integer, delayed real)"
        )

    def enqueue(self, task, feed, attempts):
        self.database.execute(
            "insert into jobs (task, feed, state, attempts, delayed) values (?, ?, 'inactive', ?, ?)",
            (task, feed, attempts, time.time()),
        )

    def dequeue(self):
        """The next job that is due, which is active from now on"""
        self.database.execute("begin immediate")
        row = self.database.execute(
            "select id, task, feed from jobs where state = 'inactive' and delayed <= ? order by delayed, id limit 1",
            (time.time(),),
        ).fetchone()
        if row is not None:
            self.database.execute("update jobs set state = 'active' where id = ?", (row[0],))
        self.database.execute("commit")
        return row

    def retry(self, job_id, delay):
        self.database.execute(
            "update jobs set state = 'inactive', attempts = attempts - 1, delayed = ? where id = ? and attempts > 1",
            (time.time() + delay, job_id),
        )

    def left(self):
        return self.database.execute("select id, attempts from jobs order by id").fetchall()
