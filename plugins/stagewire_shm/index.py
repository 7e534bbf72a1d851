"""The index: which value is in which segment, and which lease it lives by.

It is a small SQLite database beside the segments. A process that dies inside a transaction leaves a journal, and the
next one rolls it back; nothing is written for the disk's sake, since the directory does not outlive the host's memory.
Transactions follow one another under a file lock, in every process: what one of them saw no other one changes before
it has ended.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stagewire import Clock, Closed, KVError
from stagewire_shm.faults import damaged, explain
from stagewire_shm.locks import GivenUp, exclusive, open_lock

VERSION = 1
SCHEMA = """
CREATE TABLE leases (generation INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, ends_at REAL NOT NULL);
CREATE INDEX due ON leases (ends_at);
CREATE TABLE ties (key TEXT PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX tied ON ties (generation);
CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, capacity INTEGER NOT NULL, state TEXT NOT NULL, since REAL NOT NULL
);
CREATE TABLE entries (key TEXT PRIMARY KEY, segment INTEGER, size INTEGER NOT NULL);
"""


@dataclass(slots=True)
class Transaction:
    """The index while no other process sees or changes it.

    Attributes:
        db: The database.
        now: The clock, read when the lock was there.
        after: Called when the transaction was committed, before the lock is let go of.
    """

    db: sqlite3.Connection
    now: float
    after: list[Callable[[], None]] = field(default_factory=list)


class Index:
    """One process's access to the index. From any thread; transactions wait for one another."""

    def __init__(self, place: Path, timeout: float, clock: Clock) -> None:
        self._place = place
        self._timeout = timeout
        self._clock = clock
        self._mutex = threading.Lock()
        self._lock_path = place / "lock"
        self._resources = ExitStack()
        self._db: sqlite3.Connection | None = None
        self._lock = -1

    def open(self, stop: threading.Event) -> None:
        """Open the index, or make it. Raises `KVError`."""
        with self._mapped():
            self._lock = open_lock(self._lock_path)
            self._resources.callback(os.close, self._lock)
        with self._exclusively(stop), self._mapped():
            path = self._place / "index"
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            self._resources.callback(self._db.close)
            self._initialise(self._db)

    def close(self) -> None:
        """Close the index when no transaction is under way. Idempotent."""
        with self._mutex:
            self._db, self._lock = None, -1
            self._resources.close()

    @contextmanager
    def transaction(self, stop: threading.Event) -> Iterator[Transaction]:
        """Do what is in the block, all of it or, when it raises, nothing.

        Raises:
            KVError: The index is damaged or could not be had in time.
            GivenUp: It is not free at once, and ``stop`` is set.
            Closed: After `close`.
        """
        with self._exclusively(stop), self._mapped():
            assert self._db is not None, "the lock and the database are opened together"
            transaction = Transaction(self._db, self._clock())
            with _committed(self._db):
                yield transaction
            for action in transaction.after:
                action()

    @contextmanager
    def _exclusively(self, stop: threading.Event) -> Iterator[None]:
        if not self._mutex.acquire(timeout=0 if stop.is_set() else self._timeout):
            if stop.is_set():
                raise GivenUp(f"shared memory {self._place}: the operation was given up")
            raise KVError(f"shared memory {self._place}: this process's own work on its index took too long")
        try:
            if self._lock < 0:
                raise Closed("the backend is not open (or was closed)")
            with exclusive(self._lock_path, self._lock, self._timeout, stop):
                yield
        finally:
            self._mutex.release()

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise explain(self._place, error) from error

    def _initialise(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode=PERSIST")
        db.execute("PRAGMA synchronous=OFF")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            with _committed(db):
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={VERSION}")
        elif version != VERSION:
            raise KVError(f"shared memory {self._place} is of version {version}, not {VERSION}: set another name")
        verdict = db.execute("PRAGMA quick_check").fetchone()[0]
        if verdict != "ok":
            raise damaged(self._place, verdict)


@contextmanager
def _committed(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
