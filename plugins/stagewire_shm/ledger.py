"""Leases and keys in the index. Everything here happens inside a transaction."""

from __future__ import annotations

from stagewire import Lease, LeaseLost
from stagewire_shm.index import Transaction


def grant(work: Transaction, name: str, ttl: float) -> int:
    """Record a lease; returns its generation, greater than that of every lease before it."""
    inserted = work.db.execute("INSERT INTO leases (id, ends_at) VALUES (?, ?)", (name, work.now + ttl))
    assert inserted.lastrowid is not None, "an insert has a row"
    return inserted.lastrowid


def end_due(work: Transaction) -> None:
    """End the leases whose time is over. Whoever looks at a lease or a key does this first."""
    for (generation,) in work.db.execute("SELECT generation FROM leases WHERE ends_at <= ?", (work.now,)).fetchall():
        _end(work, generation)


def alive(work: Transaction, lease: Lease) -> bool:
    """Return whether this generation of the lease has not ended."""
    end_due(work)
    row = work.db.execute("SELECT 1 FROM leases WHERE generation = ? AND id = ?", (lease.generation, lease.id))
    return row.fetchone() is not None


def require(work: Transaction, lease: Lease) -> None:
    """Raise `LeaseLost` for a lease that has ended."""
    if not alive(work, lease):
        raise LeaseLost(f"lease {lease.id} of generation {lease.generation} has ended: take a new one")


def extend(work: Transaction, lease: Lease) -> None:
    """Extend a lease by its TTL from now. Raises `LeaseLost`."""
    require(work, lease)
    work.db.execute("UPDATE leases SET ends_at = ? WHERE generation = ?", (work.now + lease.ttl, lease.generation))


def tie(work: Transaction, lease: Lease, key: str) -> None:
    """Tie a key to a live lease and to no other."""
    require(work, lease)
    work.db.execute("REPLACE INTO ties (key, generation) VALUES (?, ?)", (key, lease.generation))


def revoke(work: Transaction, lease: Lease) -> None:
    """End a lease and drop its keys; one that has ended stays so."""
    if alive(work, lease):
        _end(work, lease.generation)


def _end(work: Transaction, generation: int) -> None:
    for (key,) in work.db.execute("SELECT key FROM ties WHERE generation = ?", (generation,)).fetchall():
        drop(work, key)
    work.db.execute("DELETE FROM leases WHERE generation = ?", (generation,))


def place(work: Transaction, key: str, segment: int | None, size: int) -> None:
    """Let the key show a value, instead of the one before."""
    _free_segment(work, key)
    work.db.execute("REPLACE INTO entries (key, segment, size) VALUES (?, ?, ?)", (key, segment, size))
    work.db.execute("UPDATE segments SET state = 'live' WHERE id = ?", (segment,))


def drop(work: Transaction, key: str) -> bool:
    """Remove a key and its tie; returns whether it had a value."""
    _free_segment(work, key)
    work.db.execute("DELETE FROM ties WHERE key = ?", (key,))
    return work.db.execute("DELETE FROM entries WHERE key = ?", (key,)).rowcount > 0


def find(work: Transaction, key: str) -> tuple[int | None, int] | None:
    """Return the segment and the size of a key's value; an empty value has no segment."""
    end_due(work)
    row: tuple[int | None, int] | None = work.db.execute(
        "SELECT segment, size FROM entries WHERE key = ?", (key,)
    ).fetchone()
    return row


def keys(work: Transaction) -> list[str]:
    """Return all keys that have a value, sorted."""
    end_due(work)
    return [key for (key,) in work.db.execute("SELECT key FROM entries ORDER BY key")]


def _free_segment(work: Transaction, key: str) -> None:
    work.db.execute(
        "UPDATE segments SET state = 'free', since = ? WHERE id = (SELECT segment FROM entries WHERE key = ?)",
        (work.now, key),
    )
