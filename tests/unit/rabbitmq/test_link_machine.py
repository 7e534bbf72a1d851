"""One link from end to end, with every injury that a broker can do to it: a model checks what is taken."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stagewire import ChunkKey, TransportFull
from stagewire.testing import ManualClock
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.demux import Demux, GrantSteps
from stagewire_rabbitmq.outgoing import SILENCE, Outgoing, Window
from stagewire_rabbitmq.runs import Arrival, Frame, Grant

REQUESTS = ("r0", "r1")
WINDOW = 3


class Link(RuleBasedStateMachine):
    """A sender, a queue with redelivery and a parked queue, a consumer, and grants that may be lost.

    What is put is numbered through over all runs of a request; the reader must see every number once, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.outgoing = Outgoing("a->b", Window(WINDOW, 1_000), self.clock, itertools.count(1).__next__)
        self.demux = Demux(Counters(), self.clock, self.clock, GrantSteps(1, 1_000))
        self.queue: deque[tuple[list[Arrival], bool]] = deque()
        self.parked: deque[list[Arrival]] = deque()
        self.unacked: dict[Frame, list[Arrival]] = {}
        self.grants: list[Grant] = []
        self.epoch = 1
        self.tags = itertools.count(1)
        self.put_count = dict.fromkeys(REQUESTS, 0)
        self.taken_count = dict.fromkeys(REQUESTS, 0)
        self.next_id = dict.fromkeys(REQUESTS, 0)
        self.wanted_id = dict.fromkeys(REQUESTS, 0)

    @rule(request=st.sampled_from(REQUESTS), finished=st.booleans(), twice=st.booleans())
    def put(self, request: str, finished: bool, twice: bool) -> None:
        chunk = self.next_id[request]
        message: Any = {"data": self.put_count[request], "finished": finished}
        key = ChunkKey(request, "a", chunk)
        try:
            sent = self.outgoing.admit(key, message, 10)
        except TransportFull:
            self.ask(request)
            return
        self.outgoing.settle([(sent, None)])
        arrival = Arrival(("a", request), sent.run, chunk, message, 10, 0.0)
        for _ in range(1 + twice):
            self.queue.append(([arrival], False))
        self.put_count[request] += 1
        self.next_id[request] = 0 if finished else chunk + 1

    @rule(request=st.sampled_from(REQUESTS))
    def ask(self, request: str) -> None:
        """The sender has heard nothing for long, and marks what it has put."""
        self.clock.advance(SILENCE)
        asked = self.outgoing.mark(ChunkKey(request, "a", 0))
        if asked is not None:
            run, chunk = asked
            self.queue.append(([Arrival(("a", request), run, chunk, None, 0, 0.0)], False))

    @precondition(lambda self: len(self.queue) > 1)
    @rule()
    def coalesce(self) -> None:
        """The last two messages had waited, and travel as one."""
        (last, _), (before, again) = self.queue.pop(), self.queue.pop()
        self.queue.append(([*before, *last], again))

    @precondition(lambda self: self.queue)
    @rule()
    def deliver(self) -> None:
        arrivals, redelivered = self.queue.popleft()
        self.accept("main", arrivals, redelivered=redelivered)

    def accept(self, source: str, arrivals: list[Arrival], *, redelivered: bool = False) -> None:
        frame = Frame(source, next(self.tags), self.epoch, bytes(10), "sender")
        self.unacked[frame] = arrivals
        certain = not self.parked and not redelivered and source == "main"
        self.acknowledge(self.demux.accept(frame, arrivals, redelivered=redelivered, certain=certain))

    def acknowledge(self, due: list[Frame]) -> None:
        for frame in due:
            del self.unacked[frame]
        self.grants += self.demux.grants()

    @rule()
    def lose_the_channel(self) -> None:
        for source in ("main", "parked"):
            self.demux.lose(source, self.epoch)
        self.epoch += 1
        for frame, arrivals in reversed(self.unacked.items()):
            if frame.source == "main":
                self.queue.appendleft((arrivals, True))
            else:
                self.parked.appendleft(arrivals)
        self.unacked.clear()

    @precondition(lambda self: self.unacked)
    @rule(data=st.data())
    def park(self, data: st.DataObject) -> None:
        frame = data.draw(st.sampled_from(sorted(self.unacked, key=lambda each: each.tag)))
        self.parked.append(self.unacked[frame])
        assert self.demux.park(frame)
        del self.unacked[frame]

    @rule()
    def pass_over_the_parked(self) -> None:
        self.demux.unpark()
        for _ in range(len(self.parked)):
            arrivals = self.parked.popleft()
            # While some of them are still on their way, marks mean nothing.
            self.accept("parked", arrivals)

    @rule(request=st.sampled_from(REQUESTS), limit=st.integers(1, 3))
    def take(self, request: str, limit: int) -> None:
        messages, due = self.demux.take_many(ChunkKey(request, "a", self.wanted_id[request]), limit)
        self.acknowledge(due)
        assert len(messages) <= limit
        for message in messages:
            assert message["data"] == self.taken_count[request], "each chunk comes once, in order"
            self.taken_count[request] += 1
            self.wanted_id[request] = 0 if message["finished"] else self.wanted_id[request] + 1

    @rule(heard=st.booleans())
    def hear_grants(self, heard: bool) -> None:
        grants, self.grants = self.grants, []
        for grant in grants if heard else ():
            self.outgoing.grant(grant.name, grant.run, grant.base)

    @invariant()
    def what_is_unread_is_bounded(self) -> None:
        assert self.outgoing.unread()[0] <= WINDOW * len(REQUESTS)

    @invariant()
    def only_what_is_unacknowledged_counts(self) -> None:
        assert self.demux.unread == (len(self.unacked), 10 * len(self.unacked))

    def teardown(self) -> None:
        """Once everything is delivered, everything can be taken, nothing is left, and every window opens again."""
        for _ in range(3):
            self.lose_the_channel()
            self.pass_over_the_parked()
            while self.queue:
                self.deliver()
        for request in REQUESTS:
            while self.taken_count[request] < self.put_count[request]:
                before = self.taken_count[request]
                self.take(request, 3)
                assert self.taken_count[request] > before, "what was put can be taken"
        assert self.demux.unread == (0, 0)
        assert self.demux.sizes()["held"] == 0
        self.grants.clear()
        for request in REQUESTS:
            self.reopen(request)

    def reopen(self, request: str) -> None:
        """All grants were lost: a mark finds that nothing is unread."""
        for _ in range(WINDOW + 1):
            self.put(request, finished=False, twice=False)
        while self.queue:
            self.deliver()
        self.hear_grants(heard=True)
        before = self.put_count[request]
        self.take_all(request)
        self.hear_grants(heard=True)
        self.put(request, finished=False, twice=False)
        assert self.put_count[request] == before + 1, "its window opens again"

    def take_all(self, request: str) -> None:
        while self.taken_count[request] < self.put_count[request]:
            self.take(request, 3)


TestLink = Link.TestCase
TestLink.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
