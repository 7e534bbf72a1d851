"""What is wrong with a log's lines: each kind is counted and named, with the first place where it was met (LG-6)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

LONG = 1_000_000
"""Bytes from which on a line counts as long; it is read all the same."""

OVERSIZED = 16 * 1024 * 1024
"""Bytes from which on a line is skipped, to keep memory bounded."""

BACK = 1.0
"""Seconds by which time must step back to count: less happens when several threads write."""

MEANING: Mapping[str, str] = {
    "half_written": "lines cut off in the middle",
    "malformed": "lines that look like JSON and are none",
    "plain_text": "lines that are no JSON at all",
    "no_object": "JSON that is no object",
    "nul": "lines with NUL bytes, left out when reading",
    "encoding": "lines that are no UTF-8, read with replacements",
    "long": "lines of 1 MB or more, read",
    "oversized": "lines above 16 MiB, skipped",
    "no_time": "records without a time that can be read",
    "clock_back": "steps of more than 1 s back in time",
    "unreadable": "files that could not be read to their end",
}
"""Every kind of damage, and what it means."""


class Damage(Struct):
    """One kind of damage in what was read.

    Attributes:
        kind: One of `MEANING`.
        count: How often.
        file: The file of the first.
        line: The line of the first, from 1; 0 where none is to blame.
        sample: The beginning of the first, or the reason.
    """

    kind: str
    count: int
    file: str
    line: int
    sample: str


SAMPLE = 120
"""Characters that are shown of a damaged line."""


class DamageLog:
    """Counts damage. Line numbers are relative to where this part of the input begins."""

    def __init__(self) -> None:
        self.kinds: dict[str, Damage] = {}

    def note(self, kind: str, file: str, line: int, sample: bytes | str = b"") -> None:
        """Count one."""
        known = self.kinds.get(kind)
        if known is not None:
            known.count += 1
            return
        text = sample[: 2 * SAMPLE].decode("utf-8", "replace") if isinstance(sample, bytes) else sample
        self.kinds[kind] = Damage(kind, 1, file, line, _printable(text)[:SAMPLE])

    def merge(self, other: DamageLog, before: int) -> None:
        """Take what another part counted, ``before`` lines after where this one begins."""
        for kind, each in other.kinds.items():
            known = self.kinds.get(kind)
            if known is not None:
                known.count += each.count
            else:
                line = each.line + before if each.line else 0
                self.kinds[kind] = Damage(kind, each.count, each.file, line, each.sample)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text[: 2 * SAMPLE])
