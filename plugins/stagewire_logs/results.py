"""What an analysis returns, for programs: the types behind ``--format json``, whose schema has a version (LG-5)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from stagewire_logs.damage import Damage

SCHEMA = "stagewire.logs/1"
"""The schema's name and version. One version may gain fields; what is there keeps its name and meaning."""


class Source(Struct):
    """One source that was read."""

    name: str
    lines: int
    bytes: int
    problem: str | None = None


class Percentiles(Struct):
    """Durations in seconds. Percentiles are within 1 % of the true ones (DDSketch); the others are exact."""

    count: int
    mean: float
    low: float
    p50: float
    p90: float
    p95: float
    p99: float
    high: float


class EventCount(Struct):
    """How often an event occurred."""

    pipeline: str
    level: str
    event: str
    count: int


class ErrorGroup(Struct):
    """Warnings or errors with one cause; numbers and ids in it are ``#``, and ``example`` is the first in full."""

    pipeline: str
    level: str
    event: str
    stage: str
    cause: str
    count: int
    first: str
    last: str
    file: str
    line: int
    example: str
    request_id: str
    session_id: str


class StageReport(Struct):
    """One stage of a pipeline."""

    stage: str
    requests: int
    outputs: int
    errors: int
    seconds: Percentiles | None


class EdgeReport(Struct):
    """One edge: what went over it and, where the transport's counters were logged, what that cost.

    ``get_seconds`` is the mean from put to get, ``put_blocked_seconds`` the mean that a put waited for room.
    """

    edge: str
    requests: int
    chunks: int
    puts: float | None = None
    gets: float | None = None
    bytes: float | None = None
    get_seconds: float | None = None
    put_blocked_seconds: float | None = None


class PipelineReport(Struct):
    """One pipeline's requests (LG-1)."""

    pipeline: str
    admitted: int
    ended: int
    failed: int
    cancelled: int
    unfinished: int
    per_second: float
    seconds: Percentiles | None
    stages: list[StageReport]
    edges: list[EdgeReport]


class Episode(Struct):
    """Something that lasted: from the first report that shows it to the first that does not; no ``end``: it goes on."""

    kind: Literal["starvation", "stall", "no_reports"]
    side: str | None
    start: str
    end: str
    seconds: float


class Leak(Struct):
    """Slots, permits or pairs that were acquired and never released, and since when."""

    what: str
    count: int
    since: str


class Usage(Struct):
    """How much of a capacity was used, over the reports."""

    name: str
    cap: int
    mean: float
    high: int


class CspPoint(Struct, array_like=True):
    """One point of the course of a run: time, stock of T and of Q, permits held, claims waiting."""

    at: str
    t: int
    q: int
    physical: int
    q_pending: int
    claims: int


class CspReport(Struct):
    """One CSP run (LG-2). The books are checked on every report: ``violations`` counts those that do not add up."""

    pipeline: str
    start: str
    end: str
    finished: bool
    balanced: bool | None
    reports: int
    violations: int
    violation: str
    pairs: int
    t: dict[str, int]
    q: dict[str, int]
    requests: dict[str, int]
    usage: list[Usage]
    episodes: list[Episode]
    leaks: list[Leak]
    lateness: float
    course: list[CspPoint]


class SessionReport(Struct):
    """One write session that degraded, failed or did not end."""

    session_id: str
    state: str
    path: str
    opened: str
    ended: str
    bytes: int
    cause: str


class WriteReport(Struct):
    """Write sessions and leases of one pipeline (LG-3)."""

    pipeline: str
    sessions: dict[str, int]
    bytes: dict[str, int]
    retries: int
    duplicates: int
    degraded: dict[str, int]
    pending_keys: int
    keepalive_failures: int
    leases_lost: int
    seconds: Percentiles | None
    unusual: list[SessionReport]


class Finding(Struct):
    """Something that a person should look at. A clean run has none."""

    kind: str
    severity: Literal["error", "warning"]
    pipeline: str
    at: str
    until: str
    count: int
    text: str


class Activity(Struct):
    """Records, errors and ended requests over time: one count per ``width`` seconds from ``start``."""

    start: str
    width: int
    records: list[int]
    errors: list[int]
    requests: list[int]


class Summary(Struct):
    """Everything that was found in a log."""

    schema: str
    complete: bool
    sources: list[Source]
    lines: int
    bytes: int
    records: int
    first: str
    last: str
    seconds: float
    levels: dict[str, int]
    foreign: dict[str, int]
    damage: list[Damage]
    findings: list[Finding]
    errors: list[ErrorGroup]
    pipelines: list[PipelineReport]
    csp: list[CspReport]
    writes: list[WriteReport]
    events: list[EventCount]
    activity: Activity | None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of what ``--format json`` prints."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **msgspec.json.schema(Summary)}
