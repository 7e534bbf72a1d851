"""The right to one pair, for the length of a block."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from stagewire_csp.pairing import Pair, Pairing
from stagewire_csp.slots import CONSUMED, WRITTEN_OFF


class PairLease:
    """One T and one Q, owned together from the claim to the end of the block (CSP-4, CSP-6).

    ``async with inventory.claim_pair() as pair: use(pair.t, pair.q)``. Leaving the block releases both slots, whatever
    happened: consumed when it ended well, written off when it raised or was cancelled. Leaving never suspends.

    Attributes:
        t: The T, from entering the block on.
        q: The Q, from entering the block on.
        pairing: Where the pair is to come from, set by `Inventory.claim_pair`; ``None`` once entered.
    """

    __slots__ = ("_pair", "pairing", "q", "t")  # and no __init__, which would cost a fifth of a claim

    _pair: Pair
    pairing: Pairing | None
    t: Any
    q: Any

    async def __aenter__(self) -> Self:
        pairing, self.pairing = self.pairing, None
        if pairing is None:
            raise RuntimeError("a lease is entered once: call claim_pair() for each pair")
        since = pairing.clock()
        pair = pairing.claim(since)
        again = False
        while pair is None:
            place = pairing.stand_in_line(since, first=again)
            try:
                granted = await place
            except BaseException:
                pairing.queue.abandon(place)
                raise
            pair = pairing.confirm(granted)
            again = True
        self._pair = pair
        self.t = pair[0].payload
        self.q = pair[1].payload
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        t, q = self._pair
        outcome = CONSUMED if kind is None else WRITTEN_OFF
        try:
            if t.slots is not None:
                t.slots.settle(t, outcome)
        finally:
            if q.slots is not None:
                q.slots.settle(q, outcome)
