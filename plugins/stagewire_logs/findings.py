"""What a person should look at. A clean run has none of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stagewire_logs.lines import ERRORS
from stagewire_logs.requests import Requests
from stagewire_logs.results import CspReport, Episode, ErrorGroup, Finding, PipelineReport, WriteReport
from stagewire_logs.times import epoch
from stagewire_logs.wording import counted

STARVED = 10.0
"""Seconds of one-sided starvation from which on it is a finding."""

HUNG = 60.0
"""Seconds without a sign of life after which a request counts as hung, while the log goes on."""

MAX_NAMED = 5
"""Ids that one finding names."""

_TOLD = frozenset({"request.failed", "lease.lost", "session.failed", "session.degraded", "csp.finding"})
"""Events that have findings of their own."""

_WARNINGS = {
    "transport.dead_letter": "messages that failed too often were put aside",
    "transport.unread": "messages were never read",
    "transport.unconfirmed": "messages were not confirmed when the run ended",
    "transport.expired": "chunks expired unread",
    "request.release_slow": "requests that have ended are still held by a stage",
    "key.left_behind": "temporary keys were left for their lease to end",
    "key.table_full": "no more temporary keys could be tracked",
    "lease.keepalive_failed": "keepalives of leases failed",
    "csp.cut_off": "workers were cut off at the deadline",
    "chunk.stop_unclean": "a ChunkAdapter stopped with work left",
    "close.abandoned": "objects were never closed",
}
"""Warnings that mean more than that something was tried again."""


def all_findings(
    *,
    errors: Sequence[ErrorGroup],
    pipelines: Sequence[PipelineReport],
    csp: Sequence[CspReport],
    writes: Sequence[WriteReport],
    hung: Iterable[Finding],
) -> list[Finding]:
    """Return every finding, errors first, then by time."""
    found = [
        *_of_requests(errors, pipelines),
        *hung,
        *(finding for report in csp for finding in _of_csp(report)),
        *(finding for report in writes for finding in _of_writes(report)),
        *_of_events(errors),
    ]
    return sorted(found, key=lambda finding: (finding.severity, finding.at, finding.kind))


def _of_requests(errors: Sequence[ErrorGroup], pipelines: Sequence[PipelineReport]) -> Iterator[Finding]:
    totals = {report.pipeline: report.ended + report.failed + report.cancelled for report in pipelines}
    for group in errors:
        if group.event == "request.failed":
            of = f" of {totals[group.pipeline]:,}" if group.pipeline in totals else ""
            where = f" in stage {group.stage}" if group.stage else ""
            text = (
                f"{counted(group.count, 'request')}{of} failed{where}: {group.example}; the first is {group.request_id}"
            )
            yield Finding("request_failed", "error", group.pipeline, group.first, group.last, group.count, text)


def hung_requests(pipeline: str, requests: Requests, last: str, over: str) -> Iterator[Finding]:
    """Yield a finding when requests of a pipeline never ended.

    Args:
        pipeline: Its name.
        requests: What is known of its requests.
        last: The time of the log's last record.
        over: When the pipeline's run ended; empty while it goes on.
    """
    hung = []
    for request in requests.open:
        heard = requests.last_of(request)
        if over > heard or (heard and epoch(last) - epoch(heard) > HUNG):
            hung.append((heard, request))
    if not hung:
        return
    hung.sort()
    named = [(request, ", ".join(requests.stages_of(request))) for _, request in hung[:MAX_NAMED]]
    shown = ", ".join(f"{request} (in {stages})" if stages else request for request, stages in named)
    more = f" and {len(hung) - MAX_NAMED:,} more" if len(hung) > MAX_NAMED else ""
    text = f"{counted(len(hung), 'request')} never ended: {shown}{more}"
    yield Finding("request_hung", "error", pipeline, hung[0][0], last, len(hung), text)


def _of_csp(run: CspReport) -> Iterator[Finding]:
    if run.violations:
        text = f"the books do not add up ({counted(run.violations, 'violation')}), first {run.violation}"
        yield Finding("csp_books", "error", run.pipeline, run.violation[:27], run.end, run.violations, text)
    for leak in run.leaks:
        text = f"{counted(leak.count, leak.what)} leaked: acquired and never released, since {leak.since}"
        yield Finding("csp_leak", "error", run.pipeline, leak.since, run.end, leak.count, text)
    if run.balanced is False and not run.leaks:
        yield Finding(
            "csp_unbalanced", "error", run.pipeline, run.end, run.end, 1, "the final account does not balance"
        )
    for episode in run.episodes:
        if episode.kind != "starvation" or episode.seconds >= STARVED:
            yield _of_episode(run.pipeline, episode)


def _of_episode(pipeline: str, episode: Episode) -> Finding:
    side = (episode.side or "").upper()
    lasted = f"for {episode.seconds:,.0f} s" + ("" if episode.end else ", until the log ends")
    if episode.kind == "starvation":
        text, severity = (
            f"side {side} starved {lasted} while the other had stock: look at what produces {side}",
            "warning",
        )
    elif episode.kind == "stall":
        lacks = f"; {side} was lacking" if side else ""
        text, severity = f"nothing was produced, sent or consumed {lasted}{lacks}", "error"
    else:
        text, severity = (
            f"the monitor was silent {lasted}: the event loop was blocked or the process stood still",
            "warning",
        )
    return Finding(
        f"csp_{episode.kind}",
        "error" if severity == "error" else "warning",
        pipeline,
        episode.start,
        episode.end,
        1,
        text,
    )


def _of_writes(report: WriteReport) -> Iterator[Finding]:
    for session in report.unusual:
        if "degraded" in session.state:
            text = f"session {session.session_id} went over to the raw path: {session.cause or 'cause unknown'}"
            yield Finding("session_degraded", "warning", report.pipeline, session.opened, session.ended, 1, text)
        if session.state.startswith("hung"):
            text = f"session {session.session_id} of {session.path} never ended"
            yield Finding("session_hung", "error", report.pipeline, session.opened, "", 1, text)
        if session.state.startswith(("failed", "reaped")):
            text = f"session {session.session_id} {session.state}: {session.cause or 'cause unknown'}"
            yield Finding("session_failed", "error", report.pipeline, session.opened, session.ended, 1, text)


def _of_events(errors: Sequence[ErrorGroup]) -> Iterator[Finding]:
    for group in errors:
        if group.event == "lease.lost":
            text = f"{counted(group.count, 'lease')} lost: {group.example}"
            yield Finding("lease_lost", "error", group.pipeline, group.first, group.last, group.count, text)
        elif group.event in _WARNINGS:
            text = f"{_WARNINGS[group.event]} ({counted(group.count, 'time')})" + (
                f": {group.example}" if group.example else ""
            )
            yield Finding(
                group.event.replace(".", "_"), "warning", group.pipeline, group.first, group.last, group.count, text
            )
        elif group.level in ERRORS and group.event not in _TOLD:
            text = f"{group.event} ({counted(group.count, 'time')})" + (f": {group.example}" if group.example else "")
            yield Finding("error", "error", group.pipeline, group.first, group.last, group.count, text)
