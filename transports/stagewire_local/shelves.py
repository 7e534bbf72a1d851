"""Where the streams are kept: by what they hold, each shelf in the order of last use, so that the oldest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from stagewire import ChunkKey, StageId
from stagewire_local.runs import Stream


class Path(NamedTuple):
    """One direction of one edge to one replica; both roles of a link share it."""

    edge: str
    source: StageId
    target: StageId
    replica: int


class Place(NamedTuple):
    """One request on one path."""

    path: Path
    request: str
    stage: StageId


class Shelves:
    """All streams of a transport. Not thread-safe.

    ``full`` has those with chunks in store, ``idle`` those that wait for the next chunk, ``past`` those that ended and
    are remembered for a while. Only ``full`` costs memory that grows with the payload.
    """

    def __init__(self, requests: int, remembered: int) -> None:
        self.full: OrderedDict[Place, Stream] = OrderedDict()
        self.idle: OrderedDict[Place, Stream] = OrderedDict()
        self.past: OrderedDict[Place, Stream] = OrderedDict()
        self._limits = ((self.idle, requests), (self.past, remembered))
        self._stages: dict[tuple[Path, str], dict[StageId, Stream]] = {}

    def find(self, path: Path, key: ChunkKey) -> Stream | None:
        stages = self._stages.get((path, key.request))
        return None if stages is None else stages.get(key.stage)

    def of_request(self, path: Path, request: str) -> list[tuple[Place, Stream]]:
        """Return what one request has on one path; more than one stream only if stages share a link."""
        stages = self._stages.get((path, request), {})
        return [(Place(path, request, stage), stream) for stage, stream in stages.items()]

    def file(self, place: Place, stream: Stream, now: float) -> None:
        """Put a stream where it belongs now, as the one used last."""
        stream.seen_at = now
        shelf = self._shelf(stream)
        if place in shelf:
            shelf.move_to_end(place)
            return
        self._take_down(place)
        shelf[place] = stream
        self._stages.setdefault((place.path, place.request), {})[place.stage] = stream
        self._trim()

    def stale(self, limit: float) -> Iterator[tuple[Place, Stream]]:
        """Yield what was last used at ``limit`` or before; the caller files or forgets each before asking for more."""
        for shelf in (self.full, self.idle):
            while shelf:
                place, stream = next(iter(shelf.items()))
                if stream.seen_at > limit:
                    break
                yield place, stream

    def forget(self, place: Place) -> None:
        """Remove every trace of a stream."""
        self._take_down(place)
        stages = self._stages[place.path, place.request]
        del stages[place.stage]
        if not stages:
            del self._stages[place.path, place.request]

    def _shelf(self, stream: Stream) -> OrderedDict[Place, Stream]:
        if stream.count:
            return self.full
        return self.past if stream.ended else self.idle

    def _take_down(self, place: Place) -> None:
        for shelf in (self.full, self.idle, self.past):
            if shelf.pop(place, None) is not None:
                return

    def _trim(self) -> None:
        for shelf, limit in self._limits:
            while len(shelf) > limit:
                self.forget(next(iter(shelf)))
