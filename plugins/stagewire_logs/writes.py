"""The write-session report (LG-3): bytes by path, degradations, retries, repeats, keys, leases, sessions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from stagewire_logs.facts import LEASE_EVENTS, SESSION_EVENTS, Fact
from stagewire_logs.measures import percentiles
from stagewire_logs.results import SessionReport, WriteReport
from stagewire_logs.sketch import Sketch
from stagewire_logs.times import epoch

WRITE_EVENTS = SESSION_EVENTS | LEASE_EVENTS
"""The events that this looks at."""

MAX_OPEN = 50_000
"""Sessions that are followed at one time."""

MAX_UNUSUAL = 200
"""Sessions that are listed: degraded, failed, aborted, reaped or not ended."""

HUNG = 300.0
"""Seconds after which a session that was opened and not ended counts as hung, while the log goes on."""

ENDS = {"session.finalized": "finalized", "session.aborted": "aborted", "session.reaped": "reaped"}
"""The events that end a session, and how. One that failed is aborted afterwards; it stays a failed one."""


@dataclass(slots=True)
class _Session:
    id: str
    opened: str = ""
    ended: str = ""
    path: str = ""
    state: str = "open"
    bytes: int = 0
    cause: str = ""
    degraded: bool = False

    def report(self) -> SessionReport:
        state = f"{self.state}, degraded" if self.degraded else self.state
        return SessionReport(self.id, state, self.path, self.opened, self.ended, self.bytes, self.cause)


@dataclass(slots=True)
class Writes:
    """Follows the write sessions of one pipeline, in bounded memory."""

    pipeline: str
    sessions: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    seconds: Sketch = field(default_factory=Sketch)
    pending_keys: int = 0
    _open: dict[str, _Session] = field(default_factory=dict)
    _unusual: list[_Session] = field(default_factory=list)

    def feed(self, fact: Fact) -> None:
        """Take one of `WRITE_EVENTS`."""
        self.counts[fact.event] += 1
        detail = fact.detail
        if fact.event in {"key.left_behind", "key.table_full"}:
            self.pending_keys = max(self.pending_keys, _int(detail.get("keys", detail.get("tracked"))))
        elif fact.event == "write.small_put":
            self.bytes["small_put"] += _int(detail.get("bytes"))
        elif fact.event == "session.closed":  # the agent's word; how it ended is its controller's
            self.counts["duplicates"] += _int(detail.get("duplicates"))
        elif fact.event in SESSION_EVENTS:
            self._session(fact)

    def report(self, last: str = "", over: str = "") -> WriteReport:
        """Return what was found so far.

        Args:
            last: The time of the log's last record.
            over: When the pipeline's run ended; empty while it goes on.
        """
        open_ones = [replace(session, state=_open_state(session, last, over)) for session in self._open.values()]
        return WriteReport(
            pipeline=self.pipeline,
            sessions={**self.sessions, "open": len(open_ones)},
            bytes=dict(self.bytes),
            retries=self.counts["retries"],
            duplicates=self.counts["duplicates"],
            degraded=dict(self.causes),
            pending_keys=self.pending_keys,
            keepalive_failures=self.counts["lease.keepalive_failed"],
            leases_lost=self.counts["lease.lost"],
            seconds=percentiles(self.seconds),
            unusual=[session.report() for session in [*self._unusual, *open_ones][:MAX_UNUSUAL]],
        )

    def _session(self, fact: Fact) -> None:
        session = self._of(fact)
        detail = fact.detail
        if fact.event == "session.degraded":
            session.degraded = True
            session.cause = session.cause or fact.line.cause or ""
            self.causes[(fact.line.cause or "unknown")[:200]] += 1
        elif fact.event == "session.failed":
            session.state = "failed"
            session.cause = fact.line.cause or session.cause
        elif fact.event in ENDS:
            self._ended(session, fact)
        else:
            session.path = session.path or str(detail.get("path", ""))

    def _ended(self, session: _Session, fact: Fact) -> None:
        detail = fact.detail
        if session.state != "failed":
            session.state = ENDS[fact.event]
        session.ended = fact.stamp
        session.cause = session.cause or fact.line.cause or ""
        session.bytes = _int(detail.get("bytes"))
        self.sessions[session.state] += 1
        for path in ("kv_bytes", "raw_bytes"):
            self.bytes[path.removesuffix("_bytes")] += _int(detail.get(path))
        self.counts["retries"] += _int(detail.get("retries"))
        if fact.line.seconds is not None:
            self.seconds.extend([fact.line.seconds])
        elif session.opened and session.ended:
            self.seconds.extend([epoch(session.ended) - epoch(session.opened)])
        self._open.pop(session.id, None)
        if (session.degraded or session.state != "finalized") and len(self._unusual) < MAX_UNUSUAL:
            self._unusual.append(session)

    def _of(self, fact: Fact) -> _Session:
        name = fact.line.session_id or ""
        session = self._open.get(name)
        if session is None:
            session = _Session(name)
            if len(self._open) < MAX_OPEN:
                self._open[name] = session
        if fact.event == "session.opened":
            session.opened = fact.stamp
            self.sessions["opened"] += 1
        return session


def _open_state(session: _Session, last: str, over: str) -> str:
    if session.state == "failed" or not session.opened or not last:
        return session.state
    hung = over > session.opened or epoch(last) - epoch(session.opened) > HUNG
    return "hung" if hung else session.state


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
