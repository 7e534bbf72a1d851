"""Which lines count: by time, level, event and id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from stagewire_logs.lines import RANK, Detail, Line
from stagewire_logs.reading import Batch

ID_FIELDS = frozenset(
    {
        "request_id", "session_id", "lease_id", "trace_id", "traceId", "TraceId", "span_id", "stage", "edge", "worker",
        "chunk_id", "requestId", "req_id", "reqId", "correlation_id", "otelTraceID",
    }
)  # fmt: skip
"""The fields that hold ids, flat or in a nested object."""

_NESTS = ("trace", "span", "request", "session", "context", "spanContext", "attributes", "fields", "extra")


@dataclass(frozen=True, slots=True)
class Filter:
    """Lets lines through that meet every condition. Empty conditions are met by all.

    Attributes:
        since: The earliest timestamp.
        until: The first timestamp that is too late.
        level: The quietest level.
        events: Patterns of events, such as ``csp.*``; one must match.
        ids: Values; one of the line's ids must be one of them.
    """

    since: str = ""
    until: str = ""
    level: str = ""
    events: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()

    @property
    def open(self) -> bool:
        """Whether it lets everything through."""
        return self == Filter()

    def misses(self, block: bytes) -> bool:
        """Whether a block surely holds no line that it lets through, without decoding it."""
        plain = all(each.isascii() and each.isprintable() and '"' not in each and "\\" not in each for each in self.ids)
        return bool(self.ids) and plain and not any(each.encode() in block for each in self.ids)

    def apply(self, batch: Batch) -> Batch:
        """Return the lines of a batch that it lets through."""
        if self.open:
            return batch
        kept = [at for at, line in enumerate(batch.lines) if self._lets(line) and self._has_id(batch, at)]
        return Batch(
            [batch.lines[at] for at in kept],
            [batch.numbers[at] for at in kept],
            lambda index: batch.detail(kept[index]),
            batch.read,
        )

    def _lets(self, line: Line) -> bool:
        stamp = line.timestamp
        if (self.since and stamp < self.since) or (self.until and stamp >= self.until):
            return False
        if self.level and RANK[line.level] < RANK[self.level]:
            return False
        return not self.events or any(fnmatchcase(line.event, pattern) for pattern in self.events)

    def _has_id(self, batch: Batch, at: int) -> bool:
        return not self.ids or not self.ids.isdisjoint(ids_of(batch.detail(at)))


def ids_of(detail: Detail) -> Iterable[str]:
    """Yield the ids of a line, those in nested objects included."""
    yield from _ids(detail)
    for name in _NESTS:
        nested = detail.get(name)
        if isinstance(nested, dict):
            yield from _ids(nested)
            if "id" in nested:
                yield str(nested["id"])


def _ids(fields: Mapping[str, Any]) -> Iterable[str]:
    for name in ID_FIELDS & fields.keys():
        value = fields[name]
        if isinstance(value, str | int):
            yield str(value)
