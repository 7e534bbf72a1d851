"""What is counted of a stretch of a log. Tallies of consecutive stretches merge into the tally of the whole."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stagewire_logs.damage import BACK, DamageLog
from stagewire_logs.facts import FACTS, Fact, fact_of
from stagewire_logs.foreign import cause_of
from stagewire_logs.lines import ERRORS, LOUD, Line
from stagewire_logs.loud import Groups
from stagewire_logs.reading import Batch
from stagewire_logs.requests import OUTCOMES, REQUEST_EVENTS, Requests
from stagewire_logs.series import Series
from stagewire_logs.times import epoch

SERIES = ("records", "errors", "requests")
"""What is counted over time: records, of them the errors and the ends of requests."""

_SECOND = len("2026-12-01T02:06:09")

_Kinds = Mapping[tuple[str, str, str, str | None], Sequence[Line]]
"""Lines by pipeline, level, event and stage."""


@dataclass(slots=True)
class Tally:
    """Everything that is counted of a stretch.

    Attributes:
        lines: Lines, damaged ones included.
        size: Bytes.
        records: Lines that could be read and passed the filter.
        counts: Records by pipeline, level and event.
        groups: Warnings and errors by cause.
        activity: What happened over time, by `SERIES`.
        requests: By pipeline, what became of requests, and how long it took.
        facts: What must be seen in order and is rare, such as the CSP monitor's reports.
        damage: What is damaged.
        foreign: Lines of other loggers.
        start: The time of the first record.
        first: The earliest time.
        last: The latest time.
        end: The time of the last record, for steps back.
    """

    lines: int = 0
    size: int = 0
    records: int = 0
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    groups: Groups = field(default_factory=Groups)
    activity: dict[str, Series] = field(default_factory=lambda: {name: Series() for name in SERIES})
    requests: dict[str, Requests] = field(default_factory=lambda: defaultdict(Requests))
    facts: list[Fact] = field(default_factory=list)
    damage: DamageLog = field(default_factory=DamageLog)
    foreign: Counter[str] = field(default_factory=Counter)
    start: str = ""
    first: str = ""
    last: str = ""
    end: str = ""

    def add(self, batch: Batch, name: str, before: int) -> None:
        """Count a batch of the source ``name``, ``before`` lines after where the stretch begins."""
        lines = batch.lines
        if not lines:
            return
        self.records += len(lines)
        self._clock(lines, name, before, batch.numbers)
        kinds: dict[tuple[str, str, str, str | None], list[Line]] = defaultdict(list)
        for line in lines:
            kinds[line.pipeline, line.level, line.event, line.stage].append(line)
        for (pipeline, level, event, _), group in kinds.items():
            self.counts[pipeline, level, event] += len(group)
            if event in OUTCOMES:
                self._over_time("requests", sorted([line.timestamp for line in group]))
        self._requests(kinds)
        if any(level in LOUD for _, level, _, _ in kinds):
            self._loud(batch, name, before)
        if rare := {event for _, _, event, _ in kinds} & FACTS:
            self.facts += [fact_of(line, batch.detail(at)) for at, line in enumerate(lines) if line.event in rare]

    def merge(self, later: Tally, name: str) -> None:
        """Take the tally of the stretch of ``name`` that follows; not its facts, which whoever needs them feeds on."""
        self.damage.merge(later.damage, self.lines)
        self.groups.merge(later.groups, self.lines)
        self._step(self.end, later.start, name, self.lines + 1)
        self.lines += later.lines
        self.size += later.size
        self.records += later.records
        self.counts.update(later.counts)
        self.foreign.update(later.foreign)
        for pipeline, requests in later.requests.items():
            self.requests[pipeline].merge(requests)
        for what, series in later.activity.items():
            self.activity[what].merge(series)
        self._span(later.first, later.last)
        self.start = self.start or later.start
        self.end = later.end or self.end

    def _requests(self, kinds: _Kinds) -> None:
        found: dict[str, dict[tuple[str, str], Sequence[Line]]] = defaultdict(dict)
        for (pipeline, _, event, stage), lines in kinds.items():
            if event in REQUEST_EVENTS:
                found[pipeline][event, stage or ""] = lines
        for pipeline, groups in found.items():
            self.requests[pipeline].add(groups)

    def _clock(self, lines: Sequence[Line], name: str, before: int, numbers: Sequence[int]) -> None:
        stamps = [line.timestamp for line in lines if line.timestamp]
        if not stamps:
            return
        in_order = sorted(stamps)
        if stamps != in_order or stamps[0] < self.end:
            earlier = self.end
            for line, number in zip(lines, numbers, strict=True):
                if line.timestamp:
                    self._step(earlier, line.timestamp, name, before + number)
                    earlier = line.timestamp
        self._span(in_order[0], in_order[-1])
        self.start = self.start or stamps[0]
        self.end = stamps[-1]
        self._over_time("records", in_order)

    def _step(self, earlier: str, later: str, name: str, number: int) -> None:
        if later and earlier > later and (back := epoch(earlier) - epoch(later)) > BACK:
            self.damage.note("clock_back", name, number, f"{back:.3f} s, to {later}")

    def _span(self, first: str, last: str) -> None:
        if first:
            self.first = min(self.first, first) if self.first else first
            self.last = max(self.last, last)

    def _over_time(self, name: str, stamps: Sequence[str]) -> None:
        """Count timestamps, which are in order, by their second."""
        series, at = self.activity[name], bisect_right(stamps, "")
        while at < len(stamps):
            second = stamps[at][:_SECOND]
            after = bisect_right(stamps, f"{second}~", at)
            series.add(int(epoch(f"{second}.000000Z")), after - at)
            at = after

    def _loud(self, batch: Batch, name: str, before: int) -> None:
        loud = [(at, line) for at, line in enumerate(batch.lines) if line.level in LOUD]
        self._over_time("errors", sorted(line.timestamp for _, line in loud if line.level in ERRORS))
        for at, line in loud:
            detail = batch.detail(at) if not line.cause else {}
            cause = line.cause or cause_of(detail) or str(detail.get("text", ""))
            self.groups.note(line, cause, name, before + batch.numbers[at])
