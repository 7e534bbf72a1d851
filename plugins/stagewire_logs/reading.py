"""From a block of bytes to lines: all at once where every line is ours and sound, else one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec

from stagewire_logs.damage import LONG, DamageLog
from stagewire_logs.foreign import OURS, normalise
from stagewire_logs.lines import RANK, STAMP, Detail, Line
from stagewire_logs.times import is_stamp

_OURS = msgspec.json.Decoder(Line)
_ANY = msgspec.json.Decoder()
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_NOTHING = object()
"""Stands for a line that is no JSON; ``None`` is the JSON ``null``."""

_HEAD = b'{"timestamp"'
"""How our lines begin, and many others'."""


@dataclass(slots=True)
class Batch:
    """The lines of one block.

    Attributes:
        lines: The lines that could be read.
        numbers: The number of each within the block, from 1.
        detail: Returns the i-th line with all its fields.
        read: How many lines the block has, damaged ones included.
    """

    lines: list[Line]
    numbers: Sequence[int]
    detail: Callable[[int], Detail]
    read: int


class Reader:
    """Decodes the blocks of one source, and counts what is damaged and what is foreign.

    Args:
        name: The source's name, for places.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.damage = DamageLog()
        self.foreign: Counter[str] = Counter()
        self.seen = 0
        """How many lines were read before this block."""

    def restart(self) -> tuple[DamageLog, Counter[str]]:
        """Begin to count anew; returns where damage and foreign lines are counted from now on."""
        self.damage, self.foreign, self.seen = DamageLog(), Counter(), 0
        return self.damage, self.foreign

    def oversized(self, beginning: bytes) -> None:
        """Note a line that was left out."""
        self.seen += 1
        self.damage.note("oversized", self.name, self.seen, beginning)

    def read(self, block: bytes) -> Batch:
        """Return the lines of a block."""
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        batch = self._all_at_once(block, count) or self._one_by_one(block, count)
        self.seen += count
        return batch

    def _all_at_once(self, block: bytes, count: int) -> Batch | None:
        if len(block) >= LONG or not _is_text(block):
            return None
        try:
            lines = _OURS.decode_lines(block)
        except _UNREADABLE:
            return None
        if len(lines) != count or not _sound(lines):
            return None
        raw: list[bytes] = []

        def detail(index: int) -> Detail:
            if not raw:
                raw.extend(block.split(b"\n"))
            fields: Detail = _ANY.decode(raw[index])
            return fields

        return Batch(lines, range(1, count + 1), detail, count)

    def _one_by_one(self, block: bytes, count: int) -> Batch:
        lines: list[Line] = []
        numbers: list[int] = []
        details: list[bytes | Detail] = []
        for number, raw in enumerate(block.split(b"\n"), 1):
            if not raw.strip():
                continue
            found = self._line(raw, self.seen + number)
            if found is not None:
                lines.append(found[0])
                numbers.append(number)
                details.append(found[1])

        def detail(index: int) -> Detail:
            known = details[index]
            return _ANY.decode(known) if isinstance(known, bytes) else known

        return Batch(lines, numbers, detail, count)

    def _line(self, raw: bytes, number: int) -> tuple[Line, bytes | Detail] | None:
        if len(raw) >= LONG:
            self.damage.note("long", self.name, number, raw[:LONG])
        try:
            line = _OURS.decode(raw)
        except _UNREADABLE:
            return self._other(raw, number)
        if _sound((line,)) and _is_text(raw):
            return line, raw
        return self._other(raw, number)

    def _other(self, raw: bytes, number: int) -> tuple[Line, Detail] | None:
        found = self._any(raw, number)
        if found is _NOTHING:
            return None
        if not isinstance(found, dict):
            self.damage.note("no_object", self.name, number, raw)
            return None
        line, fields, whose = normalise(found)
        if whose != OURS:
            self.foreign[whose] += 1
        if not line.timestamp:
            self.damage.note("no_time", self.name, number, raw)
        return line, fields

    def _any(self, raw: bytes, number: int) -> Any:
        """Decode whatever JSON it is, repaired where that is possible, or `_NOTHING`; damage is noted."""
        if b"\0" in raw:
            self.damage.note("nul", self.name, number, raw)
            raw = raw.replace(b"\0", b"").strip()
            if not raw:
                return _NOTHING
        if not _is_text(raw):
            self.damage.note("encoding", self.name, number, raw)
            raw = raw.decode("utf-8", "replace").encode()
        try:
            return _ANY.decode(raw.removeprefix(b"\xef\xbb\xbf"))
        except _UNREADABLE as error:
            return self._rest(raw.strip(), number, error)

    def _rest(self, raw: bytes, number: int, error: Exception) -> Any:
        """Name the damage; where another line was written after half of one, return that."""
        self.damage.note(_name_of(raw, error), self.name, number, raw)
        at = raw.rfind(_HEAD)
        if at <= 0:
            return _NOTHING
        try:
            return _ANY.decode(raw[at:])
        except _UNREADABLE:
            return _NOTHING


def _is_text(raw: bytes) -> bool:
    """Whether it is UTF-8: the decoder looks only at the fields that it needs."""
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sound(lines: Sequence[Line]) -> bool:
    """Whether all timestamps are in our one form and all levels are ours. Looks at all lines at once: this is hot."""
    stamps = list(map(_TIMESTAMP, lines))
    joined = "".join(stamps)
    if len(joined) != STAMP * len(lines) or joined[STAMP - 1 :: STAMP].strip("Z") or joined[10::STAMP].strip("T"):
        return False
    if not RANK.keys() >= set(map(_LEVEL, lines)) or joined[19::STAMP].strip("."):
        return False
    if not all(joined[at::STAMP].isdigit() for at in _SECONDS):
        return False
    return all(is_stamp(f"{minute}:00.000000Z") for minute in _minutes(stamps))


def _minutes(stamps: list[str]) -> Iterator[str]:
    """Yield each minute of the timestamps once."""
    in_order, at = sorted(stamps), 0
    while at < len(in_order):
        minute = in_order[at][:_MINUTE]
        yield minute
        at = bisect_right(in_order, f"{minute}~", at)


_MINUTE = len("2026-12-01T12:00")
_TIMESTAMP, _LEVEL = attrgetter("timestamp"), attrgetter("level")
_SECONDS = (17, 18, 20, 21, 22, 23, 24, 25)
"""Where a timestamp has the digits of its seconds."""


def _name_of(raw: bytes, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "malformed"
    if raw.startswith(b"{"):
        return (
            "half_written"
            if not raw.endswith(b"}") or "truncated" in str(error) or raw.rfind(_HEAD) > 0
            else "malformed"
        )
    return "half_written" if raw.endswith(b"}") and b'":' in raw else "plain_text"
