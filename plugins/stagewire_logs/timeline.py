"""One request or session as a timeline: what happened where, with gaps marked (LG-4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from stagewire_logs.damage import DamageLog
from stagewire_logs.filters import Filter
from stagewire_logs.lines import Detail, Line
from stagewire_logs.reading import Reader
from stagewire_logs.sources import Part, blocks
from stagewire_logs.times import epoch

SCHEMA = "stagewire.logs.timeline/1"
"""The schema's name and version, as of `stagewire_logs.results.SCHEMA`."""

MAX_ENTRIES = 20_000
"""Entries that are kept; further ones are counted."""

_SHOWN_APART = frozenset({"timestamp", "level", "event", "pipeline", "request_id", "session_id", "stage", "edge"})


class Entry(Struct):
    """One thing that happened.

    Attributes:
        at: When.
        offset: Seconds since the first entry.
        gap: Seconds of silence before it, when they are many enough to be marked.
        file: Where the line is.
        line: Its number.
        fields: What else the line says.
    """

    at: str
    offset: float
    gap: float | None
    level: str
    event: str
    pipeline: str
    where: str
    file: str
    line: int
    fields: Detail


class Timeline(Struct):
    """What a log says of one id, in the order of time."""

    schema: str
    id: str
    first: str
    last: str
    seconds: float
    left_out: int
    entries: list[Entry]


def timeline(name: str, parts: Sequence[Part], keep: Filter, gap: float) -> Timeline:
    """Collect what the parts say of the id ``name``; a silence of ``gap`` seconds and more is marked.

    Blocks without the id are not decoded, so damage elsewhere is not looked for.
    """
    found: list[Entry] = []
    left_out = 0
    for part in parts:
        for entry in _entries(part, keep):
            if len(found) < MAX_ENTRIES:
                found.append(entry)
            else:
                left_out += 1
    found.sort(key=lambda entry: entry.at)
    timed = [entry for entry in found if entry.at]
    if not timed:
        return Timeline(SCHEMA, name, "", "", 0.0, left_out, found)
    began = before = epoch(timed[0].at)
    for entry in timed:
        now = epoch(entry.at)
        entry.offset = round(now - began, 6)
        entry.gap = round(now - before, 6) if now - before >= gap else None
        before = now
    return Timeline(SCHEMA, name, timed[0].at, timed[-1].at, round(before - began, 6), left_out, found)


def _entries(part: Part, keep: Filter) -> list[Entry]:
    reader = Reader(part.name)
    found: list[Entry] = []
    for block in blocks(part, broken=lambda _reason: None, oversized=reader.oversized):
        before = reader.seen
        if keep.misses(block):
            reader.seen += block.count(b"\n")
            continue
        batch = keep.apply(reader.read(block))
        for at, line in enumerate(batch.lines):
            found.append(_entry(line, batch.detail(at), part.name, before + batch.numbers[at]))
        reader.damage = DamageLog()
    return found


def _entry(line: Line, detail: Detail, file: str, number: int) -> Entry:
    where = " ".join(part for part in (line.stage, line.edge) if part)
    fields = {name: value for name, value in detail.items() if name not in _SHOWN_APART}
    return Entry(line.timestamp, 0.0, None, line.level, line.event, line.pipeline, where, file, number, fields)
