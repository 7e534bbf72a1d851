"""What became of requests, stage by stage and edge by edge (LG-1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from stagewire_logs.lines import Line
from stagewire_logs.sketch import Sketch

OUTCOMES: Mapping[str, str] = {
    "request.ended": "ended",
    "request.failed": "failed",
    "request.cancelled": "cancelled",
}
"""The events that end a request, and how."""

REQUEST_EVENTS = frozenset({"request.admitted", "stage.submitted", "stage.ended", "stage.forwarded", *OUTCOMES})
"""The events that this looks at."""

MAX_OPEN = 100_000
"""Requests that are followed at one time; further ones are only counted."""

Times = dict[str, str]
"""When something last happened to requests, by their ids."""

_NONE = Sketch()

_REQUEST, _TIMESTAMP = attrgetter("request_id"), attrgetter("timestamp")

Groups = Mapping[tuple[str, str], Sequence[Line]]
"""Lines by event and stage."""


@dataclass(slots=True)
class Requests:
    """Counts and durations of one pipeline's requests. Takes lines many at a time, for there are millions of them.

    Attributes:
        outcomes: Requests by what became of them, ``admitted`` among them.
        durations: Seconds from admission to the end.
        stages: Seconds of each stage, from ``stage.ended``.
        totals: The same as the requests' ends tell it, for logs without the level debug.
        outputs: What each stage has put out.
        edges: Requests that went over each batch edge.
        chunks: Chunks that did.
        open: Requests that were admitted and have not ended, and when they were admitted.
        running: By stage, requests that it has taken and not ended.
        ended: Requests that ended and began before this stretch of the log.
        left: By stage, the same.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    durations: Sketch = field(default_factory=Sketch)
    stages: dict[str, Sketch] = field(default_factory=lambda: defaultdict(Sketch))
    totals: dict[str, Sketch] = field(default_factory=lambda: defaultdict(Sketch))
    outputs: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    chunks: Counter[str] = field(default_factory=Counter)
    open: Times = field(default_factory=dict)
    running: dict[str, Times] = field(default_factory=lambda: defaultdict(dict))
    ended: Times = field(default_factory=dict)
    left: dict[str, Times] = field(default_factory=lambda: defaultdict(dict))

    def add(self, groups: Groups) -> None:
        """Take lines whose events are among `REQUEST_EVENTS`, each group in order."""
        admitted: list[Line] = []
        ended: list[Line] = []
        submitted: dict[str, Sequence[Line]] = {}
        left: dict[str, Sequence[Line]] = {}
        for (event, stage), lines in groups.items():
            if event == "stage.ended":
                self.stages[stage].extend([line.seconds for line in lines if line.seconds is not None])
                self.outputs[stage] += sum([line.outputs or 0 for line in lines])
                left[stage] = lines
            elif event == "stage.submitted":
                submitted[stage] = lines
            elif event == "stage.forwarded":
                self._forwarded(lines)
            elif event == "request.admitted":
                self.outcomes["admitted"] += len(lines)
                admitted += lines
            else:
                self.outcomes[OUTCOMES[event]] += len(lines)
                self._over(lines)
                ended += lines
        went = _follow(self.open, admitted, ended, self.ended)
        for stage in submitted.keys() | left.keys():
            _follow(self.running[stage], submitted.get(stage, ()), left.get(stage, ()), self.left[stage])
        self._forget(went)

    def merge(self, later: Requests) -> None:
        """Take those of the stretch that follows."""
        for counts, others in (
            (self.outcomes, later.outcomes),
            (self.outputs, later.outputs),
            (self.edges, later.edges),
            (self.chunks, later.chunks),
        ):
            counts.update(others)
        self.durations.merge(later.durations)
        for sketches, those in ((self.stages, later.stages), (self.totals, later.totals)):
            for stage, sketch in those.items():
                sketches[stage].merge(sketch)
        _move(self.open, later.open, later.ended, self.ended)
        for stage in later.running.keys() | later.left.keys():
            _move(self.running[stage], later.running[stage], later.left[stage], self.left[stage])
        self._forget(later.ended)

    def best_stages(self) -> Mapping[str, Sketch]:
        """Return the seconds of each stage from where more is known."""
        return {
            stage: max(self.stages.get(stage, _NONE), self.totals.get(stage, _NONE), key=lambda sketch: sketch.count)
            for stage in self.stages.keys() | self.totals.keys()
        }

    def stages_of(self, request: str) -> list[str]:
        """Return the stages that have taken a request and not ended for it."""
        return sorted(stage for stage, taken in self.running.items() if request in taken)

    def last_of(self, request: str) -> str:
        """Return when something last happened to a request that is open, as far as that is kept."""
        return max(self.open[request], *(taken.get(request, "") for taken in self.running.values()), "")

    def _over(self, lines: Sequence[Line]) -> None:
        self.durations.extend([line.seconds for line in lines if line.seconds is not None])
        told = [line.stages for line in lines if line.stages]
        for stage in {stage for stages in told for stage in stages}:
            self.totals[stage].extend([stages[stage] for stages in told if stage in stages])

    def _forwarded(self, lines: Sequence[Line]) -> None:
        edges, chunks = self.edges, self.chunks
        for (edge, count), times in Counter([(line.edge or "", line.chunks or 0) for line in lines]).items():
            edges[edge] += times
            chunks[edge] += count * times

    def _forget(self, ended: Times) -> None:
        """Let go of what a request that has ended was still in."""
        for taken in self.running.values():
            for request in taken.keys() & ended.keys():
                if request not in self.open:
                    del taken[request]


def _times(lines: Sequence[Line]) -> Times:
    times = dict(zip(map(_REQUEST, lines), map(_TIMESTAMP, lines), strict=True))
    if None in times:
        return {line.request_id or "": line.timestamp for line in lines}
    return times


def _follow(here: Times, came: Sequence[Line], went: Sequence[Line], earlier: Times) -> Times:
    """Bring ``here`` up to date with the lines of who came and who went, in one batch; returns who went.

    Whoever did both was not here before and is not here now, unless the id was used again. (Times do not tell the
    order: the clock may have stepped back.)
    """
    arrivals, departures = _times(came), _times(went)
    again = {request for request in here.keys() & arrivals.keys() if request in departures}
    if len(arrivals) != len(came):
        left_over = Counter([line.request_id or "" for line in came])
        left_over.subtract([line.request_id or "" for line in went])
        again |= {request for request, count in left_over.items() if count > 0 and request in departures}
    opened = {request: arrivals[request] for request in (arrivals.keys() - departures.keys()) | again}
    _move(
        here,
        opened,
        {request: departures[request] for request in (departures.keys() - arrivals.keys()) | again},
        earlier,
    )
    return departures


def _move(here: Times, came: Times, went: Times, earlier: Times) -> None:
    """Take away who went, then add who came; who went and was not here came ``earlier``."""
    unknown = went.keys() - here.keys()
    if len(earlier) < MAX_OPEN:
        earlier |= {request: went[request] for request in unknown}
    for request in went.keys() - unknown:
        del here[request]
    if len(here) < MAX_OPEN:
        here |= came
