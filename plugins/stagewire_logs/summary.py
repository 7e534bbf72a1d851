"""Puts the tallies of all stretches together, in order, and says what comes of them."""

from __future__ import annotations

from collections import Counter

from stagewire_logs.csp import CspRun
from stagewire_logs.damage import DamageLog
from stagewire_logs.facts import CSP_EVENTS, TRANSPORT_EVENTS, Fact
from stagewire_logs.findings import all_findings, hung_requests
from stagewire_logs.lines import LEVELS
from stagewire_logs.pipelines import EdgeCounters, pipeline_reports
from stagewire_logs.results import SCHEMA, Activity, ErrorGroup, EventCount, Source, Summary
from stagewire_logs.tally import Tally
from stagewire_logs.times import epoch, from_epoch
from stagewire_logs.writes import WRITE_EVENTS, Writes

MAX_RUNS = 50
"""CSP runs that are told apart; the oldest make room."""

MAX_EVENTS = 1000
"""Events that are listed, the most frequent first."""


class Analysis:
    """Takes tallies in the order of the log. Not thread-safe."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._sources: dict[str, Source] = {}
        self._csp: list[CspRun] = []
        self._writes: dict[str, Writes] = {}
        self._edges: EdgeCounters = {}
        self._over: dict[str, str] = {}

    def add(self, name: str, stretch: Tally) -> None:
        """Take the next stretch of the source ``name``."""
        if name not in self._sources:
            self._sources[name] = Source(name, 0, 0)
            self.tally.end = ""  # time may step back from one file to the next
        source = self._sources[name]
        before = self.tally.lines - source.lines
        for each in stretch.damage.kinds.values():
            each.line -= before if each.line else 0
        for group in stretch.groups.values():
            group.line -= before
        source.lines += stretch.lines
        source.bytes += stretch.size
        self.tally.merge(stretch, name)
        for fact in stretch.facts:
            self._feed(fact)

    def problem(self, name: str, reason: str) -> None:
        """Note that a source could not be read, or not to its end."""
        self._sources.setdefault(name, Source(name, 0, 0)).problem = reason
        log = DamageLog()
        log.note("unreadable", name, 0, reason)
        self.tally.damage.merge(log, 0)

    def result(self, *, complete: bool = True) -> Summary:
        """Return everything that was found so far."""
        tally = self.tally
        errors = self._errors()
        pipelines = pipeline_reports(tally, errors, self._edges)
        csp = [run.report() for run in self._csp]
        writes = [each.report(tally.last, self._over.get(name, "")) for name, each in self._writes.items()]
        hung = [
            finding
            for name, requests in tally.requests.items()
            for finding in hung_requests(name, requests, tally.last, self._over.get(name, ""))
        ]
        levels = Counter[str]()
        for (_, level, _), count in tally.counts.items():
            levels[level] += count
        return Summary(
            schema=SCHEMA,
            complete=complete,
            sources=list(self._sources.values()),
            lines=tally.lines,
            bytes=tally.size,
            records=tally.records,
            first=tally.first,
            last=tally.last,
            seconds=epoch(tally.last) - epoch(tally.first) if tally.first else 0.0,
            levels={level: levels[level] for level in LEVELS if levels[level]},
            foreign=dict(tally.foreign),
            damage=sorted(tally.damage.kinds.values(), key=lambda each: -each.count),
            findings=all_findings(errors=errors, pipelines=pipelines, csp=csp, writes=writes, hung=hung),
            errors=errors,
            pipelines=pipelines,
            csp=csp,
            writes=writes,
            events=[
                EventCount(pipeline, level, event, count)
                for (pipeline, level, event), count in tally.counts.most_common(MAX_EVENTS)
            ],
            activity=self._activity(),
        )

    def _feed(self, fact: Fact) -> None:
        if fact.event in CSP_EVENTS:
            self._csp_run(fact).feed(fact)
        elif fact.event in TRANSPORT_EVENTS:
            self._transport(fact)
        elif fact.event in WRITE_EVENTS:
            self._writes.setdefault(fact.pipeline, Writes(fact.pipeline)).feed(fact)
        else:
            self._app(fact)

    def _csp_run(self, fact: Fact) -> CspRun:
        """Return the run that an event belongs to: the last of its pipeline, unless that one is over."""
        known = next((run for run in reversed(self._csp) if run.pipeline == fact.pipeline), None)
        if known is None or known.finished or fact.event == "csp.started":
            known = CspRun(fact.pipeline, fact.stamp)
            self._csp = [*self._csp, known][-MAX_RUNS:]
        return known

    def _transport(self, fact: Fact) -> None:
        if fact.event != "transport.stats":
            return
        counters = self._edges.setdefault(
            (fact.pipeline, fact.line.edge or str(fact.detail.get("mailbox", ""))), Counter()
        )
        counters.update({name: value for name, value in fact.detail.items() if isinstance(value, int | float)})

    def _app(self, fact: Fact) -> None:
        if fact.event == "app.started":
            self._over.pop(fact.pipeline, None)
        else:
            self._over[fact.pipeline] = fact.stamp

    def _errors(self) -> list[ErrorGroup]:
        groups = [
            ErrorGroup(
                *key, group.count, group.first, group.last, group.file, group.line, group.cause, group.request_id,
                group.session_id,
            )
            for key, group in self.tally.groups.items()
        ]  # fmt: skip
        return sorted(groups, key=lambda group: (-LEVELS.index(group.level), -group.count, group.first))

    def _activity(self) -> Activity | None:
        series = self.tally.activity
        width = max(each.width for each in series.values())
        counts = {name: each.counts(width) for name, each in series.items()}
        if not counts["records"]:
            return None
        first, last = min(counts["records"]), max(counts["records"])
        stretches = range(first, last + 1, width)
        columns = {name: [each.get(at, 0) for at in stretches] for name, each in counts.items()}
        return Activity(from_epoch(first), width, **columns)
