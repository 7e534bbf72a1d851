"""The one catalogue of events: every name that stagewire logs, its level, its fields, and what it means.

To add an event, put an `Event` into the section of its area below (or add a section and list it in ``CATALOGUE``):

- The name is dot-separated, ``area.what_happened``, in the past tense where something happened. It is stable: programs
  look for it. A name that is no longer emitted is taken out, and not used for anything else.
- ``fields`` are the event's own. The ids in ``COMMON_FIELDS`` are always allowed and need no mention.
- ``cause`` is the text of an error (`stagewire.errors.describe`), which reports group by; ``exc_info`` adds the trace.

Then ``emit(log, "area.what_happened", field=value)``. A plugin outside this repository makes `Event` objects of its own
and emits those. Under pytest and in Python's development mode an unknown name or field raises, so a test finds it;
elsewhere it is logged as it is, for logging must not break the work.

``docs/events.md`` is made from the catalogue: run ``python scripts/events_doc.py`` after a change. A test holds code
and catalogue against each other, both ways.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Level = Literal["debug", "info", "warning", "error"]

COMMON_FIELDS = frozenset(
    {
        "request_id",
        "stage",
        "replica",
        "edge",
        "chunk_id",
        "session_id",
        "lease_id",
        "worker",
        "trace_id",
        "exc_info",
    }
)
"""The ids that any event may carry, and ``exc_info`` for an exception's trace."""


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of event.

    Attributes:
        name: Dot-separated and stable.
        level: How loud it is.
        fields: The fields it may carry beside ``COMMON_FIELDS``.
        summary: What it tells a person, in one line.
    """

    name: str
    level: Level
    fields: frozenset[str]
    summary: str


def event(name: str, level: Level, fields: str, summary: str) -> Event:
    """Make an `Event`; ``fields`` are separated by spaces."""
    return Event(name, level, frozenset(fields.split()), summary)


APP = (
    event("app.started", "info", "version kind", "A pipeline was built and its backends are open; the run begins."),
    event("app.finished", "info", "seconds outputs failures stopped", "The run ended and everything was let go of."),
    event("app.failed", "error", "cause", "The run could not be started or ended with an error."),
    event("metrics.serving", "info", "host port", "Prometheus can scrape the run's numbers there, under /metrics."),
    event("plugin.broken", "warning", "plugin cause", "A plugin could not be loaded; everything else is usable."),
)

LOGS = (event("log.failed", "error", "cause", "A line could not be written as it was; its level is that of the line."),)

LIFECYCLE = (
    event("task.failed", "error", "owner task cause", "A background task ended with an error that nobody awaited."),
    event("close.failed", "warning", "owner attempt cause", "An attempt to close failed; its owner tries again."),
    event("close.finished", "debug", "owner attempt", "Everything that the owner held was let go of."),
    event("close.abandoned", "warning", "owner", "Collected unclosed after its event loop ended: held until exit."),
    event("stop.requested", "info", "signal deadline", "A stop signal came; the stop path runs."),
    event("stop.waiting", "warning", "signal waiting_for", "A further stop signal came; this is what has not ended."),
    event("stop.forced", "error", "signal deadline waiting_for", "The deadline passed; the work was cut off."),
)

TRANSPORT = (
    event("transport.expired", "warning", "chunks bytes", "Chunks that nobody asked for were dropped (TR-6)."),
    event("transport.dead_letter", "warning", "mailbox deliveries cause older_dropped", "Failed too often (TR-6)."),
    event("transport.unread", "warning", "mailbox chunks messages bytes", "Closed before this was read (TR-11)."),
    event("transport.unconfirmed", "warning", "parcels", "Closed before the broker had confirmed these (TR-11)."),
    event(
        "transport.stats",
        "info",
        "puts gets bytes outstanding redeliveries duplicates wait_seconds reconnects blocked_seconds",
        "What went over an edge or mailbox in the run that has ended (TR-12).",
    ),
    event("transport.undecodable", "warning", "queue cause", "A message of another program or version was set aside."),
    event("transport.lost", "warning", "connection cause", "A connection to the broker was lost; it is made anew."),
    event("transport.restored", "info", "connection seconds", "A connection to the broker was made anew (TR-7)."),
    event("transport.blocked", "warning", "connection", "The broker stopped publishers: memory or disk alarm (TR-5)."),
    event("transport.unblocked", "info", "connection seconds", "The broker takes messages again (TR-5)."),
    event("transport.wakeup_failed", "error", "cause", "A reader's wake-up callback raised; the put is not affected."),
)

LEASES = (
    event("lease.keepalive_failed", "warning", "failures cause", "A lease could not be kept alive; see its policy."),
    event("lease.lost", "error", "cause", "A lease that others rely on has ended; they go on without it."),
    event(
        "key.unresolved", "warning", "key cause", "It is not known whether a temporary key was stored; it is watched."
    ),
    event(
        "key.delete_failed", "warning", "key attempt cause", "A temporary key could not be deleted; it is tried again."
    ),
    event("key.table_full", "warning", "tracked oldest_age", "No more temporary keys are tracked; payloads go inline."),
    event("key.left_behind", "warning", "keys", "Stopped before these keys were gone; their lease's TTL takes them."),
)

CHUNKS = (
    event("chunk.request_failed", "error", "what attempts cause", "A request ended in an error on its sending side."),
    event("chunk.terminal_lost", "error", "what attempts cause", "Its receiver could not be told of its end."),
    event("chunk.get_failed", "warning", "cause", "Getting a chunk failed, for the first time in a row."),
    event("chunk.stalled", "error", "waited", "A request was silent for longer than its stall timeout."),
    event("chunk.cleanup_failed", "warning", "cause", "The transport could not drop what it holds of a request."),
    event("chunk.callback_failed", "error", "callback cause", "A hint of the ChunkAdapter's owner raised."),
    event("chunk.stop_unclean", "warning", "unsent stuck", "Stopped with chunks unsent or a thread still blocked."),
)

ORCHESTRATOR = (
    event("request.admitted", "debug", "", "A request was registered; its first stage is submitted next."),
    event(
        "request.ended", "info", "seconds stages", "Every final stage of a request has ended; seconds of each stage."
    ),
    event("request.failed", "warning", "seconds stages cause", "A request ended in an error, in the stage named."),
    event("request.cancelled", "info", "seconds stages", "A request was aborted, and every stage has let go of it."),
    event("request.late_output", "debug", "", "An output came for a request that is no longer in that stage."),
    event("request.output_dropped", "debug", "", "An output was dropped, because the client is slow."),
    event("request.release_slow", "warning", "seconds", "A stage still holds a request that has ended."),
    event("stage.submitted", "debug", "", "A stage has taken a request."),
    event("stage.forwarded", "debug", "chunks", "What a stage put out for a request goes on, over a batch edge."),
    event("stage.ended", "debug", "seconds outputs", "A stage has ended for a request."),
    event("stage.lost", "error", "cause requests", "A replica of a stage can no longer be used; its requests fail."),
    event("stage.hook_failed", "warning", "hook cause", "An optional method of a stage raised; the work goes on."),
    event("orchestrator.fault", "error", "cause", "A worker met an error that it did not foresee, and goes on."),
)

WORKERS = (
    event("worker.registered", "info", "", "A worker hosts a replica of a stage now."),
    event("worker.awaited", "warning", "seconds remedy", "No worker hosts this replica yet; the run waits for one."),
    event("worker.left", "info", "", "A worker left in order; it had nothing any more."),
    event("worker.lost", "error", "cause requests", "A worker is gone; its requests fail, or go on at its successor."),
    event("worker.resumed", "info", "first", "A request goes on from this input, at the successor of its worker."),
    event("worker.restarted", "warning", "cause pause", "A worker's process ended; it is started again after a pause."),
    event(
        "worker.orchestrator_gone", "warning", "cause requests", "An orchestrator is gone; its requests are released."
    ),
)

CSP = (
    event(
        "csp.started",
        "info",
        "physical t_slot q_slot q_pending reason",
        "The workers start; reason is of physical (CSP-9).",
    ),
    event(
        "csp.monitor",
        "info",
        "wall uptime t q physical q_pending claims requests pairs role_failures rates lateness findings",
        "The state: depths, permits, waits, ages, totals, rates per second, lateness of the loop (CSP-16).",
    ),
    event(
        "csp.finding",
        "warning",
        "kind side seconds text",
        "Starvation, a silent stall, or slots held in vain (CSP-10).",
    ),
    event("csp.role_failed", "warning", "role cause streak pause", "A role raised; its worker pauses and goes on."),
    event("csp.settled_failed", "warning", "side outcome cause", "A role's settled method raised; the books go on."),
    event("csp.stopping", "info", "cause deadline", "Nothing more is begun; what was begun may end (CSP-15)."),
    event("csp.cut_off", "warning", "workers", "The time to end was over; these workers were cancelled (CSP-15)."),
    event(
        "csp.finished",
        "info",
        "state balanced reason gave_up cut_off stuck",
        "The account of every T, Q and permit (CSP-15).",
    ),
)


WRITES = (
    event("agent.started", "info", "export node instance", "An agent serves an export."),
    event("agent.stopped", "info", "export node", "An agent has ended its sessions and let go of its tree (WS-15)."),
    event("agent.unregistered", "warning", "cause", "An agent could not be registered; it is tried again."),
    event("agent.mailbox_failed", "warning", "mailbox cause", "An agent could not take requests; it tries again."),
    event("agent.reply_failed", "warning", "mailbox cause", "An answer could not be sent; it is tried once more."),
    event("agent.fault", "error", "mailbox cause", "A request failed in a way that was not foreseen."),
    event("agent.files_reaped", "info", "files", "Unfinished files of killed agents were removed (WS-19)."),
    event("session.opened", "debug", "path node", "A write session holds its path."),
    event("session.degraded", "warning", "path cause", "From now on payload goes in the messages (WS-9)."),
    event("session.failed", "warning", "path cause", "A write session cannot go on."),
    event(
        "session.finalized",
        "info",
        "path bytes kv_bytes raw_bytes retries",
        "A file is written and has its name; bytes by the way that they took, and frames that were sent again (WS-20).",
    ),
    event(
        "session.aborted",
        "info",
        "path kv_bytes raw_bytes retries",
        "A write session was given up; the old file is whole in atomic mode.",
    ),
    event("session.closed", "info", "path frames duplicates", "An agent has ended a session; repeats it had (WS-6)."),
    event("write.small_put", "info", "path bytes", "A small file was written in one request (WS-13)."),
    event("session.reaped", "warning", "path idle", "An agent gave up a session of which it heard nothing (WS-12)."),
)


def _index(*sections: Iterable[Event]) -> Mapping[str, Event]:
    index: dict[str, Event] = {}
    for each in (each for section in sections for each in section):
        if each.name in index:
            raise ValueError(f"event {each.name!r} stands twice in the catalogue")
        index[each.name] = each
    return MappingProxyType(index)


CATALOGUE: Mapping[str, Event] = _index(
    APP, LOGS, LIFECYCLE, TRANSPORT, LEASES, CHUNKS, ORCHESTRATOR, WORKERS, CSP, WRITES
)
"""Every event by its name."""

_strict = "PYTEST_VERSION" in os.environ or sys.flags.dev_mode


class UnknownEvent(LookupError):
    """The catalogue has no such event, or the event no such field. Raised only under test and in development mode."""


def emit(log: FilteringBoundLogger, what: str | Event, /, **fields: Any) -> None:
    """Log an event of the catalogue, or one of a plugin's own, at its level. Costs next to nothing when filtered out.

    Raises:
        UnknownEvent: The name or a field is not in the catalogue; only under pytest and in Python's development mode.
    """
    known = what if isinstance(what, Event) else CATALOGUE.get(what)
    if known is None:
        known = _unknown(str(what))
    if _strict:
        _check_fields(known, fields)
    getattr(log, known.level)(known.name, **fields)


def _unknown(name: str) -> Event:
    if _strict:
        raise UnknownEvent(f"event {name!r} is not in stagewire.events.CATALOGUE: add it to a section there")
    return Event(name, "info", frozenset(), "")


def _check_fields(known: Event, fields: Mapping[str, object]) -> None:
    unknown = sorted(fields.keys() - known.fields - COMMON_FIELDS)
    if unknown:
        allowed = ", ".join(sorted(known.fields)) or "none of its own"
        raise UnknownEvent(f"event {known.name!r} has no field {', '.join(unknown)}; its fields: {allowed}")
