"""A small database layer: a connection for each thread, and a wrapper around its cursors in debug mode"""

import sqlite3
import threading
import time

DEBUG = True


class Settings:
    name = "nav.sqlite3"


class CursorWrapper:
    def __init__(self, cursor, database):
        self.cursor = cursor
        self.database = database

    def execute(self, sql, parameters=()):
        return self.cursor.execute(sql.replace("%s", "?"), parameters)

    def fetchall(self):
        return self.cursor.fetchall()


class CursorDebugWrapper(CursorWrapper):
    def execute(self, sql, parameters=()):
        started = time.monotonic()
        try:
            return super().execute(sql, parameters)
        finally:
            duration = time.monotonic() - started
            text = self.database.last_executed_query(sql, parameters)
            self.database.queries.append({"sql": text, "time": f"{duration:.3f}"})


class DatabaseWrapper:
    def __init__(self):
        self.connection = sqlite3.connect(Settings.name, timeout=60.0, isolation_level=None)
        self.connection.execute("PRAGMA synchronous=OFF")
        self.queries = []

    def cursor(self):
        wrapper = CursorDebugWrapper if DEBUG else CursorWrapper
        return wrapper(self.connection.cursor(), self)

    def last_executed_query(self, sql, parameters):
        return sql % tuple(repr(value) for value in parameters)


class ConnectionHandler:
    def __init__(self):
        self.local = threading.local()

    def get(self):
        if not hasattr(self.local, "default"):
            self.local.default = DatabaseWrapper()
        return self.local.default


connections = ConnectionHandler()


def migrate():
    cursor = connections.get().cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS interface (netbox INTEGER, ifindex INTEGER, ifdescr TEXT, ifalias TEXT,"
        " octets_in INTEGER, octets_out INTEGER, load REAL, PRIMARY KEY (netbox, ifindex))"
    )


class Interface:
    COLUMNS = ("netbox", "ifindex", "ifdescr", "ifalias", "octets_in", "octets_out", "load")
    BATCH = 500

    @classmethod
    def bulk_replace(cls, rows):
        cursor = connections.get().cursor()
        for start in range(0, len(rows), cls.BATCH):
            batch = rows[start : start + cls.BATCH]
            one = "(" + ", ".join(["%s"] * len(cls.COLUMNS)) + ")"
            sql = f"REPLACE INTO interface ({', '.join(cls.COLUMNS)}) VALUES " + ", ".join([one] * len(batch))
            cursor.execute(sql, [value for row in batch for value in row])

    @classmethod
    def busiest(cls, netbox):
        cursor = connections.get().cursor()
        cursor.execute("SELECT ifindex, load FROM interface WHERE netbox = %s ORDER BY load DESC LIMIT 5", [netbox])
        return cursor.fetchall()
