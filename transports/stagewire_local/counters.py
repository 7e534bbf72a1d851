"""The counters of one edge or mailbox (TR-12)."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counters:
    """The names that every transport has, and below them those of this one."""

    puts: int = 0
    gets: int = 0
    bytes: int = 0
    outstanding: int = 0
    redeliveries: int = 0
    duplicates: int = 0
    wait_seconds: float = 0.0
    reconnects: int = 0
    blocked_seconds: float = 0.0
    full: int = 0
    dropped: int = 0
    expired: int = 0
    dead: int = 0
    unread: int = 0
    unread_bytes: int = 0

    def snapshot(self) -> dict[str, float]:
        return asdict(self)
