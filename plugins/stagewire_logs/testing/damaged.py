"""Damages a log in every way that is counted (LG-6), and knows the counts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from stagewire_logs.damage import LONG, OVERSIZED
from stagewire_logs.times import epoch, from_epoch


@dataclass(frozen=True, slots=True)
class Damaged:
    """A damaged log.

    Attributes:
        data: Its bytes.
        lines: How many lines it has.
        records: How many of them can be read.
        damage: How often each kind of damage is in it.
    """

    data: bytes
    lines: int
    records: int
    damage: Mapping[str, int]


def damaged(seed: int, lines: Iterable[bytes], share: float = 0.1) -> Damaged:
    """Damage about a share of the lines, and add one that is too long to be read."""
    dice = random.Random(seed)  # noqa: S311 — a repeatable log, no secret
    made: list[bytes] = []
    counts: Counter[str] = Counter()
    records = 0
    stepped = False
    for line in lines:
        kind = dice.choice(tuple(_WAYS)) if dice.random() < share and not stepped else ""
        way, readable = _WAYS.get(kind, (_keep, True))
        made.append(way(line, dice))
        records += readable
        if kind:
            counts[kind] += 1
        stepped = kind == "clock_back" or (stepped and not readable)
    made.append(b'{"event":"' + b"x" * (OVERSIZED + LONG) + b'"}\n')
    counts["oversized"] += 1
    data = b"".join(made)
    return Damaged(data, data.count(b"\n"), records, dict(counts))


Way = Callable[[bytes, random.Random], bytes]


def _keep(line: bytes, _dice: random.Random) -> bytes:
    return line


def _half(line: bytes, dice: random.Random) -> bytes:
    cut = dice.randrange(2, len(line) - 2)
    if dice.random() < 0.5:  # noqa: PLR2004 — the beginning or the end of it
        return line[:cut] + b"\n"
    return line[max(cut, line.index(b":")) :] if b'":' in line[max(cut, 2) :] else line[:cut] + b"\n"


def _malformed(line: bytes, _dice: random.Random) -> bytes:
    return line.replace(b'"level":', b'"level";', 1)


def _text(_line: bytes, dice: random.Random) -> bytes:
    return dice.choice((b"Traceback (most recent call last):\n", b"Killed\n", b"2026-12-01 12:00:00 INFO started\n"))


def _no_object(_line: bytes, dice: random.Random) -> bytes:
    return dice.choice((b"17\n", b"[1, 2]\n", b'"hello"\n', b"null\n"))


def _nul(line: bytes, dice: random.Random) -> bytes:
    return bytes(dice.randint(1, 5000)) + line


def _encoding(line: bytes, _dice: random.Random) -> bytes:
    return line.replace(b"{", b'{"note":"\xff",', 1)


def _long(line: bytes, _dice: random.Random) -> bytes:
    return line.replace(b"{", b'{"blob":"' + b"x" * LONG + b'",', 1)


def _no_time(line: bytes, _dice: random.Random) -> bytes:
    fields = msgspec.json.decode(line)
    return msgspec.json.encode(fields | {"timestamp": "yesterday"}) + b"\n"


def _clock_back(line: bytes, dice: random.Random) -> bytes:
    fields = msgspec.json.decode(line)
    earlier = from_epoch(epoch(fields["timestamp"]) - dice.randint(3600, 7200))
    return msgspec.json.encode(fields | {"timestamp": earlier}) + b"\n"


_WAYS: Mapping[str, tuple[Way, bool]] = {
    "half_written": (_half, False),
    "malformed": (_malformed, False),
    "plain_text": (_text, False),
    "no_object": (_no_object, False),
    "nul": (_nul, True),
    "encoding": (_encoding, True),
    "long": (_long, True),
    "no_time": (_no_time, True),
    "clock_back": (_clock_back, True),
}
"""How a line is damaged, and whether it can be read all the same."""
