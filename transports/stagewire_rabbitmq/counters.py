"""What an edge or a mailbox counts (TR-12)."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counters:
    """The counters of one edge or mailbox, named as `stagewire.TRANSPORT_STATS` names them, and a few more.

    Incremented under the lock of whoever owns them; reading them is a snapshot.
    """

    puts: int = 0
    gets: int = 0
    bytes: int = 0
    outstanding: int = 0
    redeliveries: int = 0
    duplicates: int = 0
    wait_seconds: float = 0.0
    reconnects: int = 0
    blocked_seconds: float = 0.0
    messages: int = 0
    full: int = 0
    dropped: int = 0
    dead: int = 0
    parked: int = 0

    def snapshot(self) -> dict[str, float]:
        """Return the counters by name."""
        return asdict(self)
