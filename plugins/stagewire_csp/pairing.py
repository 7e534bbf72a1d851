"""The engine of the inventory: one owner of both stocks, of who waits for a pair, and of the depth that others watch.

It is synchronous throughout, so no cancel can fall between two steps; waiting is the lease's. Each operation leaves
the stock settled: what has expired is dropped, who waits is served, the new depth is told. What one call leaves undone
because too much expired at once is done by the calls that follow, or in the loop's next round if a claim waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stagewire import Clock, Closed
from stagewire_csp.envelope import ResourceEnvelope
from stagewire_csp.link import FRESH, LOOSE
from stagewire_csp.shelf import Shelf
from stagewire_csp.waiting import WaitQueue

STEPS = 256
"""How many expired envelopes per side, and how many pairs, one call handles.

That is well under a millisecond of work: a million that expire at once never hold up the event loop.
"""

DepthWatcher = Callable[[int, int], None]
"""Takes the depths of T and Q after they changed. Called inside an operation: returns at once, calls nothing back."""

Pair = tuple[ResourceEnvelope, ResourceEnvelope]
"""A T and a Q that were taken together."""


class NoMorePairs(Closed):
    """No pair can be formed any more: the inventory was closed, or one side has ended and is used up."""

    def __init__(self) -> None:
        super().__init__("no more pairs: the inventory was closed, or one side has ended and is used up")


class Pairing:
    """Pairs the first T with the first Q for the first who waits. Belongs to one event loop.

    Args:
        t: The stock of T.
        q: The stock of Q.
        clock: Monotonic seconds.
    """

    def __init__(self, t: Shelf, q: Shelf, clock: Clock) -> None:
        self.queue = WaitQueue[Pair](self._give_back)
        """The claims that wait."""
        self.reserved = 0
        """How many pairs were handed to claims that have not taken them yet."""
        self.closed = False
        """Whether the stock was closed; set by `close`."""
        self._t = t
        self._q = q
        t.opposite, q.opposite = q, t
        self.clock = clock
        self._ended: list[Shelf] = []
        self._unfinished = False
        self._attentive = False
        self._going_on: asyncio.Handle | None = None
        self._watchers: list[DepthWatcher] = []
        self._told = (0, 0)

    def put(self, shelf: Shelf, envelope: ResourceEnvelope) -> None:
        """Take an envelope over into one of the two stocks. Raises as `Inventory.put_t`."""
        if envelope.slots is not shelf.slots or envelope.after is not FRESH:
            raise ValueError(_why_not(shelf, envelope))
        if self._attentive:
            self._before_putting(shelf)
        now = self.clock()
        other = shelf.opposite
        pairs = other.size and self.queue.waiting
        if pairs and self._pass_on(shelf, envelope, now):
            return
        shelf.add(envelope, anew=not self.reserved)
        if pairs or shelf.due <= now or other.due <= now or self._unfinished:
            self._settle(now)
        elif self._attentive:
            self._wrap_up()

    def claim(self, now: float) -> Pair | None:
        """Take a pair at once, unless there is none or others wait for one."""
        t, q = self._t, self._q
        if t.due <= now or q.due <= now or self._unfinished:
            self._settle(now)
        if not t.size or not q.size or (self.queue.waiting and self.queue.ready()):
            return None
        return self._pop(now) if self._attentive else (t.pop(), q.pop())

    def stand_in_line(self, since: float, *, first: bool) -> asyncio.Future[Pair]:
        """Wait for a pair, which `confirm` must accept. As `WaitQueue.join`.

        Raises:
            NoMorePairs: There will be none.
        """
        if self._attentive:
            self._before_waiting()
        return self.queue.join(since, first=first)

    def confirm(self, granted: Pair) -> Pair | None:
        """Check a granted pair again, for time has passed. What is still good of a bad pair may make another one."""
        now = self.clock()
        self.reserved -= 1
        t, q = granted
        if t.created_at + t.ttl > now < q.created_at + q.ttl:
            if self._attentive:
                self._wrap_up()
            return granted
        self._shelve(granted)
        self._expire(now)
        pair = self._pop(now) if self._t.size and self._q.size else None
        self._wrap_up()
        return pair

    def end(self, shelf: Shelf) -> None:
        """Say that no more will be put into this stock. Idempotent."""
        if shelf not in self._ended:
            self._ended.append(shelf)
        self._attentive = True
        self._settle(self.clock())

    def close(self) -> None:
        """Pair no more, and let no one wait. Idempotent."""
        self.closed = self._attentive = True
        self._wrap_up()

    def write_off(self) -> bool:
        """Write off some of what is in stock; returns whether there is more."""
        more_t = self._t.write_off(STEPS)
        more_q = self._q.write_off(STEPS)
        self._wrap_up()
        return more_t or more_q

    def watch(self, watcher: DepthWatcher) -> None:
        """Tell ``watcher`` the depths now and whenever they have changed."""
        self._watchers.append(watcher)
        self._attentive = True
        watcher(self._t.size, self._q.size)

    def _pop(self, now: float) -> Pair | None:
        """Take the heads, which must exist, unless a call has left expired ones there."""
        if self._unfinished and not self._has_fresh_heads(now):
            return None
        pair = self._t.pop(), self._q.pop()
        if self._attentive:
            self._wrap_up()
        return pair

    def _give_back(self, pair: Pair) -> None:
        self.reserved -= 1
        self._shelve(pair)
        self._settle(self.clock())

    def _shelve(self, pair: Pair) -> None:
        if self.closed:
            for envelope in pair:
                envelope.release()
        else:
            self._t.give_back(pair[0])
            self._q.give_back(pair[1])

    def _pass_on(self, shelf: Shelf, envelope: ResourceEnvelope, now: float) -> bool:
        """Hand an envelope to who waits without its lying in stock at all, when that would change nothing else."""
        other = shelf.opposite
        if shelf.size or self._unfinished or other.due <= now:
            return False
        future = self.queue.next()
        if future is None:
            return False
        envelope.after = LOOSE
        deadline = envelope.created_at + envelope.ttl
        if deadline > shelf.latest:  # noqa: PLR1730 — as in Shelf.add: it may be given back ahead of what comes meanwhile
            shelf.latest = deadline
        self.reserved += 1
        future.set_result((envelope, other.pop()) if shelf is self._t else (other.pop(), envelope))
        if self._attentive:
            self._wrap_up()
        return True

    def _settle(self, now: float) -> None:
        if self._t.due <= now or self._q.due <= now or self._unfinished:
            self._expire(now)
        if self.queue.waiting and self._t.size and self._q.size:
            self._match(now)
        if self._attentive:
            self._wrap_up()

    def _expire(self, now: float) -> None:
        more_t = self._t.drop_expired(now, STEPS)
        more_q = self._q.drop_expired(now, STEPS)
        self._unfinished = more_t or more_q
        self._attentive = self._attentive or self._unfinished

    def _match(self, now: float) -> None:
        t, q = self._t, self._q
        served = 0
        while t.size and q.size and served < STEPS:
            if self._unfinished and not self._has_fresh_heads(now):
                return
            future = self.queue.next()
            if future is None:
                return
            self.reserved += 1
            served += 1
            future.set_result((t.pop(), q.pop()))
        if served == STEPS:
            self._unfinished = self._attentive = True

    def _has_fresh_heads(self, now: float) -> bool:
        """Whether the heads can be paired. They can as long as no call has left expired ones undone."""
        return self._t.has_fresh_head(now) and self._q.has_fresh_head(now)

    def _wrap_up(self) -> None:
        """Do what is not always to be done: tell the depth, end waits that are in vain, see to what is unfinished."""
        depths = self._t.size, self._q.size
        if depths != self._told:
            self._told = depths
            for watcher in self._watchers:
                watcher(*depths)
        if self._over():
            self.queue.fail(NoMorePairs)
        elif self._unfinished and self.queue.ready():
            self._go_on_soon()

    def _over(self) -> bool:
        return self.closed or (not self.reserved and any(not shelf.size for shelf in self._ended))

    def _before_putting(self, shelf: Shelf) -> None:
        if self.closed:
            raise Closed("the inventory is closed: nothing can be put into stock any more")
        if shelf in self._ended:
            raise Closed(f"side {shelf.slots.name!r} was said to have ended: nothing can be put there any more")

    def _before_waiting(self) -> None:
        if self._over():
            raise NoMorePairs
        if self._unfinished:
            self._go_on_soon()

    def _go_on_soon(self) -> None:
        if self._going_on is None:
            self._going_on = asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._going_on = None
        self._settle(self.clock())


def _why_not(shelf: Shelf, envelope: ResourceEnvelope) -> str:
    side = shelf.slots.name
    if envelope.slots is None:
        return f"put_{side}: the envelope was released, its slot is gone"
    if envelope.slots is not shelf.slots:
        return f"put_{side}: the envelope holds a slot of {envelope.slots!r}, not of this inventory's {side}_slots"
    return f"put_{side}: the envelope was put before; resources are never put back"
