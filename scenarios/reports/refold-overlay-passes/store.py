"""The store of an index: chunks of source code in SQLite, and the passes that work through all of them"""

import hashlib
import random
import sqlite3

import numpy as np

CHUNKS, WIDTH = 80_000, 88
STEMS = ("parse", "index", "overlay", "commit", "graph", "chunk", "search", "watch", "merge", "token")
WORDS = [f"{stem}{ending}" for stem in STEMS for ending in ("", "er", "ed", "ing", "_all", "_one")]


def connect(path):
    connection = sqlite3.connect(path)
    connection.execute("pragma temp_store = memory")
    connection.execute("pragma cache_size = -32768")
    return connection


def chunks():
    source = random.Random(5)
    for number in range(CHUNKS):
        symbol = f"{source.choice(WORDS)}::{source.choice(WORDS)}"
        yield number, symbol, " ".join(source.choices(WORDS, k=24))


def create(path):
    connection = connect(path)
    connection.execute("pragma journal_mode = off")
    connection.execute("create table chunks (id integer primary key, symbol text, body text)")
    connection.execute("create table codes (id integer primary key, code integer)")
    connection.execute("create table overlays (worktree integer primary key, revision integer, digest text)")
    with connection:
        connection.executemany("insert into chunks values (?, ?, ?)", chunks())
    connection.close()


def migrate(path):
    """The new format has a code of 32 bits for each chunk, for the first look of a search"""
    vectors = np.zeros((CHUNKS, WIDTH), np.float32)
    connection = connect(path)
    for number, body in connection.execute("select id, body from chunks"):
        vectors[number] = np.frombuffer(body.encode()[:WIDTH], np.uint8)
    vectors -= vectors.mean(0)
    planes = np.random.default_rng(1).standard_normal((WIDTH, 32), np.float32)
    codes = (vectors @ planes > 0) @ (1 << np.arange(32))
    with connection:
        connection.executemany("insert into codes values (?, ?)", enumerate(codes.tolist()))
    connection.close()


def refresh(path, worktree, revision):
    """The overlay of a worktree: all chunks in the order of their symbols, and those that it changes"""
    connection = connect(path)
    digest, changed = hashlib.sha256(), 0
    try:
        rows = connection.execute("select id, symbol, body from chunks order by symbol, body")
        for number, symbol, body in rows:
            digest.update(symbol.encode())
            digest.update(body.encode())
            changed += (31 * number + revision) % 97 == worktree
        with connection:
            connection.execute(
                "insert or replace into overlays values (?, ?, ?)", (worktree, revision, digest.hexdigest())
            )
    finally:
        connection.close()
    return {"changed": changed, "digest": digest.hexdigest()[:12]}
