"""An index with a connection for each thread, a pool that answers queries, and maintenance in a thread of its own."""

import os
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

CYCLES = 400


class Database:
    def __init__(self, path):
        self.path = path
        self._local = threading.local()
        self._all_conns = []
        self._conns_lock = threading.Lock()

    def _new_connection(self):
        conn = sqlite3.connect(self.path, check_same_thread=False, timeout=20)
        conn.execute("PRAGMA journal_mode=WAL")
        conn.execute("PRAGMA synchronous=OFF")
        with self._conns_lock:
            self._all_conns.append(conn)
        return conn

    @property
    def conn(self):
        if not hasattr(self._local, "conn"):
            self._local.conn = self._new_connection()
        return self._local.conn

    def close(self):
        with self._conns_lock:
            for conn in self._all_conns:
                conn.close()


class MaintenanceManager:
    """One phase after the other, each started when the one before has told that it is over."""

    def __init__(self, db):
        self.db = db
        self.error = None

    def consolidate(self, cycle):
        old = self.db.conn.execute("SELECT id, vector FROM node ORDER BY seen LIMIT 30").fetchall()
        vectors = np.stack([np.frombuffer(vector, np.float32) for _, vector in old])
        near = vectors @ vectors.T
        with self.db.conn:
            for (node, _), row in zip(old, near, strict=True):
                self.db.conn.execute(
                    "UPDATE node SET seen = ?, score = ? WHERE id = ?", (cycle, float(row.max()), node)
                )

    def run(self, cycle):
        done = threading.Event()

        def work():
            try:
                self.consolidate(cycle)
            except (OSError, sqlite3.Error) as error:
                self.error = error
            finally:
                done.set()

        threading.Thread(target=work, daemon=True, name=f"maintenance-{cycle}").start()
        done.wait()
        if self.error is not None:
            raise RuntimeError(f"maintenance cycle {cycle} failed") from self.error


def main():
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        db = Database(os.path.join(folder, "index.db"))
        with db.conn:
            db.conn.execute("CREATE TABLE node (id INTEGER PRIMARY KEY, vector BLOB, seen INTEGER, score REAL)")
            rows = ((rng.standard_normal(256, np.float32).tobytes(), 0, 0.0) for _ in range(3000))
            db.conn.executemany("INSERT INTO node (vector, seen, score) VALUES (?, ?, ?)", rows)
        pool = ThreadPoolExecutor(4)
        manager = MaintenanceManager(db)
        pause = threading.Event()
        for cycle in range(CYCLES):
            queries = [pool.submit(lambda: db.conn.execute("SELECT max(score) FROM node").fetchone()) for _ in range(4)]
            manager.run(cycle)
            best = max(query.result()[0] for query in queries)
            if cycle % 10 == 0:
                print(f"cycle {cycle}: best {best:.2f}, {len(os.listdir('/proc/self/fd'))} descriptors", flush=True)
            pause.wait(0.17)
        pool.shutdown()
        db.close()


if __name__ == "__main__":
    main()
