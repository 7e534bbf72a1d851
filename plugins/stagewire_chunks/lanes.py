"""What waits to be put: items, the uses of a request id that they belong to, and the lane of each request id.

Plain data without locks or policy; `Backlog` keeps the order and the sums, `Sender` decides.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from stagewire import ChunkMessage

NOT_READY = -1
"""The turn of a lane that has none."""


class Kind(Enum):
    """What an item is to its request."""

    CHUNK = auto()
    FINAL = auto()
    """The caller's final."""
    CANCEL = auto()
    """The adapter's terminal for a cancelled use whose caller saved no final."""
    ERROR = auto()
    """The adapter's terminal for a use that failed."""


CHUNK, FINAL, CANCEL, ERROR = Kind
"""The kinds by themselves: to look one up in its class takes longer than all else that is decided about a chunk."""


class Item:
    """One chunk or terminal that waits to be put. Written out, for one is made at every save: it takes half the time.

    Attributes:
        use: The use that it belongs to.
        payload: The snapshot, until the message is built; the text of an ERROR.
        size: Bytes that it counts for.
        kind: What it is.
        number: Its place among all items that were ever saved.
        message: What to put, once it is built; the same object at every attempt.
        unsure_at: The id under which an attempt failed in a way that leaves open whether it arrived.
    """

    __slots__ = ("kind", "message", "number", "payload", "size", "unsure_at", "use")

    def __init__(self, use: Use, payload: Any, size: int, kind: Kind) -> None:
        self.use = use
        self.payload = payload
        self.size = size
        self.kind = kind
        self.number = 0
        self.message: ChunkMessage | None = None
        self.unsure_at: int | None = None

    @property
    def wanted(self) -> bool:
        """Whether it is still to be put: of a cancelled use the terminal is (CH-6), of a failed one the ERROR."""
        if self.use.failed:
            return self.kind is ERROR
        return not self.use.cancelled or self.kind is not CHUNK

    @property
    def may_be_whole(self) -> bool:
        """Whether it may have arrived as the only message of its use.

        A transport that keeps runs then knows a repeat by the message object: another one would begin the next run.
        """
        return self.unsure_at == 0 and self.kind is not CHUNK and self.use.next_id == 0


@dataclass(slots=True, eq=False)
class Use:
    """One use of a request id, from its first chunk to its terminal: the generation that a cancel marks (CH-14).

    Attributes:
        lane: The lane of the request id.
        next_id: The id of its next chunk; belongs to the SAVE step alone.
        cancelled: Whether it was cancelled.
        emptied: Whether the cancel has taken the data out of its final's message; belongs to the SAVE step alone.
        unsure_until: Below this id, from ``next_id`` on, a chunk may have arrived whose put failed; the step's alone.
        ended: Whether its terminal was put, perhaps hidden by a chunk; belongs to the SAVE step alone.
        failed: Whether it failed.
        closed: Whether its terminal was saved; a later save begins the next use.
        marker: The adapter's own CANCEL terminal, as long as the caller's final may still take its place.
        linger: Until when the marker waits for that.
    """

    lane: Lane
    next_id: int = 0
    cancelled: bool = False
    emptied: bool = False
    unsure_until: int = 0
    ended: bool = False
    failed: bool = False
    closed: bool = False
    marker: Item | None = None
    linger: float = 0.0


@dataclass(slots=True, eq=False)
class Lane:
    """All that waits for one request id: FIFO, over its uses.

    Attributes:
        request: The request id.
        use: The use that the next save or cancel concerns.
        items: What waits, oldest first.
        chunks: How many items it has, those that the SAVE step has taken out and not settled included.
        bytes: Their bytes.
        turn: The number by which it has its turn; `NOT_READY` when it has nothing to do or is parked.
        parked: Whether it waits for a time instead of its turn.
        due: That time.
        tries: Failed attempts to put its first item.
        faults: Those of them that were no back-pressure.
        since: When the first of them failed.
    """

    request: str
    use: Use | None = None
    items: deque[Item] = field(default_factory=deque)
    chunks: int = 0
    bytes: int = 0
    turn: int = NOT_READY
    parked: bool = False
    due: float = 0.0
    tries: int = 0
    faults: int = 0
    since: float = 0.0
