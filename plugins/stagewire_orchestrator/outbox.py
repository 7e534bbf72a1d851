"""Outputs on their way to the client: one order over all requests, bounds for each of them (OR-16)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from stagewire import Clock, Closed, StageId
from stagewire_orchestrator.options import Limits
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.replicas import Replica


class Lane:
    """The outputs of one use of one id that wait for the client.

    Attributes:
        wire: The id of this use.
        outputs: What waits, each with its weight; few, so that a list is smaller and as fast as a deque.
        bytes: What that weighs.
        taken_at: When the client last took one, if somebody looks at that.
        stale: How many turns in the common order belong to outputs that were purged.
    """

    __slots__ = ("_flow", "_held", "bytes", "outputs", "stale", "taken_at", "wire")

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.outputs: list[tuple[OrchOutput, int]] = []
        self.bytes = 0
        self.taken_at = 0.0
        self.stale = 0
        self._flow: dict[StageId | None, Replica] | None = None
        self._held: list[Replica] | None = None

    def flows(self, replica: Replica) -> None:
        """Have a replica that holds itself back told of each output that is taken."""
        if self._flow is None:
            self._flow = {}
        self._flow[replica.stage] = replica

    def hold(self, replica: Replica) -> None:
        """Stop reading a replica, which does not hold itself back, until the client has caught up."""
        if self._held is None:
            self._held = []
        if replica not in self._held:
            self._held.append(replica)
            replica.hold(self)

    def taken(self, output: OrchOutput, *, full: bool) -> None:
        """The client took an output; whoever waited for that goes on."""
        if self._held is not None and not full:
            self._unhold()
        if self._flow is not None and not output.finished:
            replica = self._flow.get(output.stage_id)
            if replica is not None and replica.credit is not None:
                replica.credit(self.wire, 1)

    def close(self) -> None:
        """The request is over: nobody is held or told any more."""
        self._flow = None
        if self._held is not None:
            self._unhold()

    def _unhold(self) -> None:
        for replica in self._held or ():
            replica.unhold(self)
        self._held = None


class Outbox:
    """Puts are made by the dispatcher and never wait; any number of tasks take.

    Args:
        limits: The bounds.
        on_terminal_taken: Called for each request whose last output was taken.
        clock: The loop's time, where somebody looks at when outputs were taken.
    """

    def __init__(self, limits: Limits, on_terminal_taken: Callable[[], None], clock: Clock | None = None) -> None:
        self._most, self._most_bytes = limits.queued_outputs, int(limits.queued_bytes)
        self._clock = clock
        self._on_terminal_taken = on_terminal_taken
        self._order: deque[Lane] = deque()
        self._stale = 0
        self._takers: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._order) - self._stale

    def full(self, lane: Lane) -> bool:
        """Whether the request has as many outputs or bytes waiting as it may."""
        return len(lane.outputs) >= self._most or lane.bytes >= self._most_bytes

    def put(self, lane: Lane, output: OrchOutput, weight: int = 0) -> None:
        """Append an output that weighs so much."""
        lane.outputs.append((output, weight))
        lane.bytes += weight
        self._order.append(lane)
        self._wake()

    def purge(self, lane: Lane) -> None:
        """Drop what waits of one request, in time that does not depend on the others."""
        lane.stale += len(lane.outputs)
        self._stale += len(lane.outputs)
        lane.outputs.clear()
        lane.bytes = 0
        if self._stale > 64 + len(self._order) // 2:
            self._compact()

    def pop(self) -> OrchOutput | None:
        """Take the next output, if there is one."""
        while self._order:
            lane = self._order.popleft()
            if not lane.stale:
                return self._take(lane)
            lane.stale -= 1
            self._stale -= 1
        return None

    async def get(self) -> OrchOutput:
        """Wait for the next output. Cancelling it loses none. Raises `Closed` once all were taken after `close`."""
        while (output := self.pop()) is None:
            if self._closed:
                raise Closed("the orchestrator was shut down, and every output was taken")
            await self._wait()
        return output

    def close(self) -> None:
        """Let waiting takers go, once nothing is left."""
        self._closed = True
        self._wake(all_of_them=True)

    def _take(self, lane: Lane) -> OrchOutput:
        output, weight = lane.outputs.pop(0)
        lane.bytes -= weight
        if self._clock is not None:
            lane.taken_at = self._clock()
        if output.finished and not output.cancelled:  # a cancelled request gave its slot back by itself
            self._on_terminal_taken()
        else:
            lane.taken(output, full=self.full(lane))
        return output

    def _compact(self) -> None:
        kept: deque[Lane] = deque()
        for lane in self._order:
            if lane.stale:
                lane.stale -= 1
            else:
                kept.append(lane)
        self._order = kept
        self._stale = 0

    async def _wait(self) -> None:
        taker = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except BaseException:
            if taker in self._takers:
                self._takers.remove(taker)
            elif len(self):  # it was woken and does not take: the wake-up is for another
                self._wake()
            raise

    def _wake(self, *, all_of_them: bool = False) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                if not all_of_them:
                    return
