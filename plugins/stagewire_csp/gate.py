"""Local admission of production: from stock depth and static water marks alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewire_csp.inventory import Inventory
from stagewire_csp.waiting import WaitQueue


@dataclass(frozen=True, slots=True)
class WaterMarks:
    """When production pauses and when it goes on again.

    Attributes:
        low: At this depth or less production goes on again.
        high: At this depth or more it pauses; greater than ``low``.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high:
            raise ValueError(f"water marks low={self.low}, high={self.high}: they must be 0 <= low < high")

    @classmethod
    def for_slots(cls, slots: int) -> Self:
        """Return the marks by default: pause when every slot is taken by stock, go on when half of them are."""
        return cls(low=slots // 2, high=slots)


class Valve:
    """The gate of one side: shut from the high mark on, open again at the low mark. It is no permit: it counts nobody.

    Args:
        marks: The water marks.
    """

    __slots__ = ("_queue", "marks", "open")

    def __init__(self, marks: WaterMarks) -> None:
        self.marks = marks
        self.open = True
        """Whether production may go on."""
        self._queue = WaitQueue[None](_nothing_to_take_back)

    @property
    def waiting(self) -> int:
        """How many workers wait for it to open."""
        return self._queue.waiting

    async def admit(self) -> None:
        """Wait until production may go on. Suspends only while it may not; cancel-safe."""
        while not self.open:
            await self._queue.wait()

    def update(self, depth: int) -> None:
        """Take the side's new depth. Never suspends."""
        if self.open:
            self.open = depth < self.marks.high
        elif depth <= self.marks.low:
            self.open = True
            while self._queue.hand(None):
                pass


class AdmissionGate:
    """Whether production of T and of Q may go on (CSP-8). It picks no roles, moves nothing and changes no capacity.

    It hears every change of depth from the inventory, the one owner of depth, so stock that expires wakes it like stock
    that is claimed. ``await gate.t.admit()``.

    Args:
        inventory: Whose depths decide.
        t: The water marks of side T.
        q: Those of side Q.
    """

    def __init__(self, inventory: Inventory, *, t: WaterMarks, q: WaterMarks) -> None:
        self.t = Valve(t)
        """The gate of side T."""
        self.q = Valve(q)
        """The gate of side Q."""
        inventory.watch(self._depths_changed)

    def _depths_changed(self, t: int, q: int) -> None:
        self.t.update(t)
        self.q.update(q)


def _nothing_to_take_back(_nothing: None) -> None:
    """Being let through is not a thing that could be lost: whoever else waited was let through too."""
