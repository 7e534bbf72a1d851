"""Which delivered chunk belongs to which key: plain data behind one lock, without a broker.

A message carries chunks of many requests, in whatever order readers ask for them; its acknowledgement is due when the
last of them was taken or dropped. What comes twice is known by (request, run, chunk) also after it was taken (TR-3):
each run of a request carries a token that its sender drew, and the tokens of ended runs are remembered for a while.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagewire import ChunkKey, ChunkMessage, Clock
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.runs import GONE, Arrival, Frame, Grant, Held, Name, Run, Stream

REMEMBERED = 8_192
"""How many ended runs are remembered, to know a late repeat."""


@dataclass(frozen=True, slots=True)
class GrantSteps:
    """After how many chunks, or bytes, that are gone a sender is told so: often enough that its window never closes."""

    chunks: int
    bytes: int


class Demux:
    """Presents ``get(key)`` over delivered messages. Any thread may call any method; none waits but for the lock.

    The methods that settle chunks return the frames whose acknowledgement became due by it; `grants` returns what
    senders are to be told.
    """

    def __init__(self, counters: Counters, clock: Clock, wall: Clock, steps: GrantSteps) -> None:
        self.counters = counters
        self._lock = threading.Lock()
        self._clock = clock
        self._wall = wall
        self._steps = steps
        self._streams: OrderedDict[Name, Stream] = OrderedDict()
        self._ended: OrderedDict[tuple[Name, int], None] = OrderedDict()
        self._frames: OrderedDict[Frame, None] = OrderedDict()
        self._bytes = 0
        self._grants: list[Grant] = []

    @property
    def unread(self) -> tuple[int, int]:
        """How many messages are delivered and not acknowledged, and their bytes."""
        return len(self._frames), self._bytes

    @property
    def owing(self) -> bool:
        """Whether there are grants to be sent."""
        return bool(self._grants)

    def grants(self) -> list[Grant]:
        """Return what senders are to be told, once."""
        with self._lock:
            grants, self._grants = self._grants, []
            return grants

    def accept(
        self, frame: Frame, arrivals: Sequence[Arrival], *, redelivered: bool = False, certain: bool = True
    ) -> list[Frame]:
        """File the chunks of a delivered message.

        ``certain`` says that everything its senders put before it was delivered here or is gone: only then do its
        marks mean anything.
        """
        with self._lock:
            self.counters.redeliveries += redelivered
            self._frames[frame] = None
            self._bytes += len(frame.body)
            for arrival in arrivals:
                if arrival.message is not None:
                    self._file(frame, arrival, arrival.message)
                elif certain:
                    self._heed(frame, arrival)
            return self._settle(frame, 0)

    def take(self, key: ChunkKey) -> tuple[ChunkMessage | None, list[Frame]]:
        """Take the chunk with this key out, once."""
        messages, due = self.take_many(key, 1)
        return (messages[0] if messages else None), due

    def take_many(self, key: ChunkKey, limit: int) -> tuple[list[ChunkMessage], list[Frame]]:
        """Take the chunk with this key and those right after it, up to the final one and at most ``limit``."""
        messages: list[ChunkMessage] = []
        due: list[Frame] = []
        with self._lock:
            now, wall = self._clock(), self._wall()
            stream = self._touch((key.stage, key.request), now)
            while len(messages) < limit and self._take_one(stream, key.chunk + len(messages), wall, messages, due):
                pass
            if messages:
                stream.asked_at = stream.starved_at = None
            else:
                self._note_want(stream, key.chunk, now)
        return messages, due

    def cleanup(self, request: str) -> list[Frame]:
        """Give up the runs that the request has here; what is still to come of them is dropped as it arrives."""
        with self._lock:
            names = [name for name in self._streams if name[1] == request]
            return [frame for name in names for frame in self._give_up(self._streams[name])]

    def expire(self, age: float) -> tuple[list[Name], list[Frame]]:
        """Give up what nobody has asked for during ``age`` seconds; returns whose chunks were dropped (TR-6)."""
        limit = self._clock() - age
        lost: list[Name] = []
        due: list[Frame] = []
        with self._lock:
            while self._streams:
                stream = next(iter(self._streams.values()))
                if stream.seen_at > limit:
                    break
                if any(run.held for run in stream.runs):
                    lost.append(stream.name)
                due += self._give_up(stream)
        return lost, due

    def gap(self, key: ChunkKey, age: float) -> int | None:
        """Return the first chunk here past the one of this key, asked for in vain for ``age`` seconds (TR-3)."""
        with self._lock:
            stream = self._streams.get((key.stage, key.request))
            if stream is None or stream.starved_at is None or stream.asked_for != key.chunk:
                return None
            beyond = [chunk for chunk in stream.runs[0].held if chunk > key.chunk] if stream.runs else []
            late = not stream.parked and self._clock() - stream.starved_at >= age
            return min(beyond) if beyond and late else None

    def idle_frames(self, patience: float) -> Iterator[Frame]:
        """Yield frames, oldest first, of whose chunks none belongs to a request that was asked for lately.

        Empty unless somebody waits: some request was asked for within ``patience`` seconds and has nothing here.
        """
        with self._lock:
            limit = self._clock() - patience
            waiting = {stream for stream in self._streams.values() if (stream.asked_at or 0.0) > limit}
            frames = list(self._frames) if waiting else []
        for frame in frames:
            if frame.pending and waiting.isdisjoint(frame.parts):
                yield frame

    def park(self, frame: Frame) -> bool:
        """Forget the chunks of a frame that was put elsewhere; returns whether its acknowledgement is due now."""
        with self._lock:
            if frame not in self._frames:
                return False
            self.counters.parked += 1
            for stream in frame.parts:
                stream.parked = True
                stream.drop(frame)
            self._remove(frame)
            return True

    def wants_parked(self) -> bool:
        """Return whether a request that somebody waits for has chunks that were put elsewhere."""
        with self._lock:
            return any(stream.parked and stream.asked_at is not None for stream in self._streams.values())

    def unpark(self) -> None:
        """Note that everything that was put elsewhere is being delivered again."""
        with self._lock:
            for stream in self._streams.values():
                stream.parked = False

    def lose(self, source: str, epoch: int) -> None:
        """Note that a channel is gone: its messages will be delivered again and are not acknowledged any more."""
        with self._lock:
            for frame in [frame for frame in self._frames if frame.source == source and frame.epoch <= epoch]:
                self._remove(frame)

    def sizes(self) -> dict[str, int]:
        """Return the live sizes of the tables."""
        with self._lock:
            held = sum(len(run.held) for stream in self._streams.values() for run in stream.runs)
            return {"streams": len(self._streams), "held": held, "frames": len(self._frames), "ended": len(self._ended)}

    def _touch(self, name: Name, now: float) -> Stream:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, now)
        else:
            self._streams.move_to_end(name)
        stream.seen_at = now
        return stream

    @staticmethod
    def _note_want(stream: Stream, chunk: int, now: float) -> None:
        stream.asked_at = now
        if stream.starved_at is None or stream.asked_for != chunk:
            stream.asked_for, stream.starved_at = chunk, now

    def _take_one(
        self, stream: Stream, chunk: int, wall: float, messages: list[ChunkMessage], due: list[Frame]
    ) -> bool:
        """Take one chunk of a stream; returns whether the next may be taken with it."""
        run = stream.runs[0] if stream.runs else None
        held = None if run is None else run.take(chunk)
        if run is None or held is None:
            return False
        messages.append(held.message)
        self.counters.gets += 1
        self.counters.wait_seconds += max(0.0, wall - held.sent_at)
        due += self._settle(held.frame, 1)
        if run.taken:
            self._end(stream, stream.runs.popleft())
        elif run.base - run.granted >= self._steps.chunks or run.untold >= self._steps.bytes:
            self._grant(stream.name, run, run.base)
        return not (held.message["finished"] or run.taken)

    def _file(self, frame: Frame, arrival: Arrival, message: ChunkMessage) -> None:
        if (arrival.name, arrival.run) in self._ended:
            self.counters.duplicates += 1
            return
        stream = self._touch(arrival.name, self._clock())
        run = stream.run(arrival.run)
        if run.was_taken(arrival.chunk):
            self.counters.duplicates += 1
            return
        earlier = run.held.get(arrival.chunk)
        if earlier is not None:
            self.counters.duplicates += 1
            if earlier.frame in self._frames:
                return
        if message["finished"]:
            run.final = arrival.chunk
        run.reply_to = frame.reply_to
        run.held[arrival.chunk] = Held(message, frame, arrival.size, arrival.sent_at)
        frame.pending += 1
        frame.parts.add(stream)

    def _heed(self, frame: Frame, mark: Arrival) -> None:
        """A sender whose window is closed asks what is still here: it may have missed a grant, or we our start."""
        if (mark.name, mark.run) in self._ended:
            if frame.reply_to is not None:
                self._grants.append(Grant(frame.reply_to, mark.name, mark.run, GONE))
            return
        stream = self._touch(mark.name, self._clock())
        if stream.parked:
            return
        run = stream.run(mark.run)
        run.reply_to = frame.reply_to
        run.skip(mark.chunk)
        self._grant(mark.name, run, run.base)

    def _grant(self, name: Name, run: Run, base: int) -> None:
        grant = run.grant(name, base)
        if grant is not None:
            self._grants.append(grant)

    def _settle(self, frame: Frame, chunks: int) -> list[Frame]:
        frame.pending -= chunks
        if frame.pending > 0 or frame not in self._frames:
            return []
        self._remove(frame)
        return [frame]

    def _remove(self, frame: Frame) -> None:
        del self._frames[frame]
        self._bytes -= len(frame.body)
        frame.parts = set()

    def _end(self, stream: Stream, run: Run) -> None:
        self._ended[stream.name, run.token] = None
        while len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        if not stream.runs and not stream.parked:
            self._streams.pop(stream.name, None)

    def _give_up(self, stream: Stream) -> list[Frame]:
        due: list[Frame] = []
        while stream.runs:
            run = stream.runs.popleft()
            for held in run.held.values():
                due += self._settle(held.frame, 1)
            if run.final is None:
                self._grant(stream.name, run, GONE)
            self._end(stream, run)
        self._streams.pop(stream.name, None)
        return due
