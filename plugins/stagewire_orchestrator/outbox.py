"""Outputs on their way to the client: one order over all requests, bounds for each of them (OR-16)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from stagewire import Clock, Closed, StageId
from stagewire.codec import weigh
from stagewire_orchestrator.options import Limits
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.replicas import Replica


class Lane:
    """The outputs of one use of one id that wait for the client.

    Attributes:
        wire: The id of this use.
        outputs: What waits, each with its weight.
        bytes: What that weighs.
        flow: The replicas that hold themselves back, by stage; they are told of each output that was taken.
        held: The replicas that are not read meanwhile, because they do not.
        taken_at: When the client last took one.
        stale: How many turns in the common order belong to outputs that were purged.
    """

    __slots__ = ("bytes", "flow", "held", "outputs", "stale", "taken_at", "wire")

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.outputs: deque[tuple[OrchOutput, int]] = deque()
        self.bytes = 0
        self.flow: dict[StageId | None, Replica] = {}
        self.held: list[Replica] = []
        self.taken_at = 0.0
        self.stale = 0

    def hold(self, replica: Replica) -> None:
        """Stop reading a replica until the client has caught up with this request."""
        if replica not in self.held:
            self.held.append(replica)
            replica.hold(self)

    def unhold(self) -> None:
        """Let every replica that this request held be read again."""
        for replica in self.held:
            replica.unhold(self)
        self.held.clear()


class Outbox:
    """Puts are made by the dispatcher and never wait; any number of tasks take."""

    def __init__(self, limits: Limits, clock: Clock, on_terminal_taken: Callable[[], None]) -> None:
        self._limits = limits
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
        return len(lane.outputs) >= self._limits.queued_outputs or lane.bytes >= self._limits.queued_bytes

    def put(self, lane: Lane, output: OrchOutput) -> None:
        """Append an output."""
        weight = weigh(output.data)
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
        lane.unhold()
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
        output, weight = lane.outputs.popleft()
        lane.bytes -= weight
        lane.taken_at = self._clock()
        if lane.held and not self.full(lane):
            lane.unhold()
        if output.finished:
            if not output.cancelled:  # the slot of a cancelled request was given back when it was let go of
                self._on_terminal_taken()
        elif lane.flow and (replica := lane.flow.get(output.stage_id)) is not None and replica.credit is not None:
            replica.credit(lane.wire, 1)
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
