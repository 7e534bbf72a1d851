"""Which delivered chunk belongs to which key: plain data behind one lock, without a broker.

A message carries chunks of many requests, in whatever order readers ask for them; its acknowledgement is due when the
last of them was taken or dropped. What comes twice is known by (request, run, chunk) also after it was taken (TR-3):
each run of a request carries a token that its sender drew, and the tokens of ended runs are remembered for a while.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagewire import ChunkKey, ChunkMessage, Clock, StageId
from stagewire_rabbitmq.counters import Counters

REMEMBERED = 8_192
"""How many ended runs are remembered, to know a late repeat."""

Name = tuple[StageId, str]
"""A request as a demultiplexer knows it: (stage, request id)."""


class Frame:
    """One delivered message: ``tag`` is only good for the channel of its ``epoch``, at the consumer ``source``."""

    __slots__ = ("body", "epoch", "parts", "pending", "source", "tag")

    def __init__(self, source: str, tag: int, epoch: int, body: bytes) -> None:
        self.source = source
        self.tag = tag
        self.epoch = epoch
        self.body = body
        self.pending = 0
        self.parts: list[Stream] = []


@dataclass(frozen=True, slots=True)
class Arrival:
    """One chunk of a message."""

    name: Name
    run: int
    chunk: int
    message: ChunkMessage
    sent_at: float


@dataclass(slots=True)
class Held:
    """A chunk that was delivered and not taken."""

    message: ChunkMessage
    frame: Frame
    sent_at: float


class Run:
    """The chunks of one run: those held, and which ones were taken."""

    __slots__ = ("ahead", "base", "final", "held", "token")

    def __init__(self, token: int) -> None:
        self.token = token
        self.base = 0
        self.ahead: set[int] = set()
        self.final: int | None = None
        self.held: dict[int, Held] = {}

    def was_taken(self, chunk: int) -> bool:
        return chunk < self.base or chunk in self.ahead

    def take(self, chunk: int) -> Held | None:
        held = self.held.pop(chunk, None)
        if held is not None:
            self.ahead.add(chunk)
            while self.base in self.ahead:
                self.ahead.remove(self.base)
                self.base += 1
        return held

    @property
    def taken(self) -> bool:
        return self.final is not None and self.base > self.final


class Stream:
    """What one request has here: its runs in order of arrival; the reader is in the first."""

    __slots__ = ("asked_at", "name", "parked", "runs", "seen_at")

    def __init__(self, name: Name, now: float) -> None:
        self.name = name
        self.runs: deque[Run] = deque()
        self.asked_at: float | None = None
        self.seen_at = now
        self.parked = False

    def run(self, token: int) -> Run:
        for run in self.runs:
            if run.token == token:
                return run
        run = Run(token)
        self.runs.append(run)
        return run


class Demux:
    """Presents ``get(key)`` over delivered messages. Any thread may call any method; none waits but for the lock.

    The methods that settle chunks return the frames whose acknowledgement became due by it.
    """

    def __init__(self, counters: Counters, clock: Clock, wall: Clock) -> None:
        self.counters = counters
        self._lock = threading.Lock()
        self._clock = clock
        self._wall = wall
        self._streams: OrderedDict[Name, Stream] = OrderedDict()
        self._ended: OrderedDict[tuple[Name, int], None] = OrderedDict()
        self._frames: OrderedDict[Frame, None] = OrderedDict()
        self._bytes = 0

    @property
    def unread(self) -> tuple[int, int]:
        """How many messages are delivered and not acknowledged, and their bytes."""
        return len(self._frames), self._bytes

    def accept(self, frame: Frame, arrivals: Sequence[Arrival], *, redelivered: bool = False) -> list[Frame]:
        """File the chunks of a delivered message."""
        with self._lock:
            self.counters.redeliveries += redelivered
            self._frames[frame] = None
            self._bytes += len(frame.body)
            for arrival in arrivals:
                self._file(frame, arrival)
            return self._settle(frame, 0)

    def take(self, key: ChunkKey) -> tuple[ChunkMessage | None, list[Frame]]:
        """Take the chunk with this key out, once."""
        with self._lock:
            now = self._clock()
            stream = self._touch((key.stage, key.request), now)
            held = stream.runs[0].take(key.chunk) if stream.runs else None
            if held is None:
                stream.asked_at = now
                return None, []
            stream.asked_at = None
            self.counters.gets += 1
            self.counters.wait_seconds += max(0.0, self._wall() - held.sent_at)
            if stream.runs[0].taken:
                self._end(stream, stream.runs.popleft())
            return held.message, self._settle(held.frame, 1)

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

    def idle_frames(self, patience: float) -> Iterator[Frame]:
        """Yield frames, oldest first, of whose chunks none belongs to a request that was asked for lately.

        Empty unless somebody waits: some request was asked for within ``patience`` seconds and has nothing here.
        """
        with self._lock:
            limit = self._clock() - patience
            waiting = {stream.name for stream in self._streams.values() if (stream.asked_at or 0.0) > limit}
            frames = list(self._frames) if waiting else []
        for frame in frames:
            if frame.pending and not any(part.name in waiting for part in frame.parts):
                yield frame

    def park(self, frame: Frame) -> bool:
        """Forget the chunks of a frame that was put elsewhere; returns whether its acknowledgement is due now."""
        with self._lock:
            if frame not in self._frames:
                return False
            self.counters.parked += 1
            for part in frame.parts:
                part.parked = True
                for run in part.runs:
                    run.held = {chunk: held for chunk, held in run.held.items() if held.frame is not frame}
            self._remove(frame)
            return True

    def wants_parked(self) -> bool:
        """Return whether a request that somebody waits for has chunks that were put elsewhere."""
        with self._lock:
            return any(stream.parked and stream.asked_at is not None for stream in self._streams.values())

    def unpark(self) -> None:
        """Note that everything that was put elsewhere has been delivered again."""
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

    def _file(self, frame: Frame, arrival: Arrival) -> None:
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
            earlier.frame.pending -= 1
        if arrival.message["finished"]:
            run.final = arrival.chunk
        run.held[arrival.chunk] = Held(arrival.message, frame, arrival.sent_at)
        frame.pending += 1
        frame.parts.append(stream)

    def _settle(self, frame: Frame, chunks: int) -> list[Frame]:
        frame.pending -= chunks
        if frame.pending > 0 or frame not in self._frames:
            return []
        self._remove(frame)
        return [frame]

    def _remove(self, frame: Frame) -> None:
        del self._frames[frame]
        self._bytes -= len(frame.body)
        frame.parts = []

    def _end(self, stream: Stream, run: Run) -> None:
        self._ended[stream.name, run.token] = None
        while len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        if not stream.runs and not stream.parked:
            del self._streams[stream.name]

    def _give_up(self, stream: Stream) -> list[Frame]:
        due: list[Frame] = []
        while stream.runs:
            run = stream.runs.popleft()
            for held in run.held.values():
                due += self._settle(held.frame, 1)
            self._end(stream, run)
        self._streams.pop(stream.name, None)
        return due
