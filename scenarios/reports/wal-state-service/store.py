"""The states of the devices, in SQLite"""

import sqlite3


class StateStore:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("CREATE TABLE states (id INTEGER PRIMARY KEY, device TEXT, at REAL, state BLOB)")
        self.connection.commit()

    def add(self, rows):
        with self.connection:
            self.connection.executemany("INSERT INTO states (device, at, state) VALUES (?, ?, ?)", rows)

    def latest(self, count):
        return self.connection.execute("SELECT device, at FROM states ORDER BY id DESC LIMIT ?", (count,)).fetchall()

    def count(self):
        return self.connection.execute("SELECT max(id) FROM states").fetchone()[0]

    def close(self):
        self.connection.close()
