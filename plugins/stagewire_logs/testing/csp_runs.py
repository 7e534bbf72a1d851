"""Runs of a CSP runtime, simulated by the books alone, with leaks, stalls and starvation at known times."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stagewire_logs.testing.writing import Event, Stopwatch

SLOTS = 16
INTERVAL = 5.0
"""Seconds between two reports of the monitor."""


@dataclass(frozen=True, slots=True)
class CspFaults:
    """What goes wrong, by the number of the report that shows it first.

    Attributes:
        leak_t: When a slot of T is acquired that nothing will release.
        stall: From when to when (exclusive) nothing moves; Q is lacking.
        starve_t: From when to when (exclusive) no T is made.
        forged: When a report claims a Q too many.
    """

    leak_t: int | None = None
    stall: tuple[int, int] | None = None
    starve_t: tuple[int, int] | None = None
    forged: int | None = None


@dataclass(slots=True)
class _Books:
    t: Counter[str] = field(default_factory=Counter)
    q: Counter[str] = field(default_factory=Counter)
    leaked: int = 0
    in_use: int = 0
    failed: int = 0

    def side(self, name: str) -> dict[str, Any]:
        book = self.t if name == "t" else self.q
        held = _held(book)
        depth = held - self.in_use - (self.leaked if name == "t" else 0)
        permit = {"cap": SLOTS, "free": SLOTS - held, "held": held, "waiting": 0}
        totals = {name: book[name] for name in ("produced", "consumed", "written_off", "expired")}
        return {"depth": depth, "age": 1.0, "gate_open": True, "gate_waiting": 0, "slots": permit, **totals}


def csp_run(seed: int, reports: int, faults: CspFaults = CspFaults(), *, pipeline: str = "pairs") -> Iterator[Event]:
    """Yield the events of a run with so many reports of the monitor."""
    dice, watch, books = random.Random(seed), Stopwatch(), _Books()  # noqa: S311 — a repeatable log, no secret
    began = watch.now
    capacity = {"physical": 4, "t_slot": SLOTS, "q_slot": SLOTS, "q_pending": 8}
    yield watch.event("info", "csp.started", pipeline, **capacity, reason="explicit")
    for number in range(reports):
        watch.forward(INTERVAL)
        _move(dice, books, number, faults)
        state = _state(books, watch.now - began)
        if number == faults.forged:
            state["q"]["produced"] += 1
        yield watch.event(
            "info", "csp.monitor", pipeline, wall=watch.now, **state, rates={}, lateness=0.001, findings=[]
        )
    watch.forward(1.0)
    _finish(books)
    final = _state(books, watch.now - began)
    final["claims"] = 0
    yield watch.event(
        "info", "csp.finished", pipeline, state=final, balanced=not books.leaked, reason=None, gave_up=False
    )


def _move(dice: random.Random, books: _Books, number: int, faults: CspFaults) -> None:
    stalled = faults.stall is not None and faults.stall[0] <= number < faults.stall[1]
    if number == faults.leak_t:
        books.t["produced"] += 1
        books.leaked += 1
    if stalled:
        return
    starved = faults.starve_t is not None and faults.starve_t[0] <= number < faults.starve_t[1]
    before_stall = faults.stall is not None and number == faults.stall[0] - 1
    made = dice.randint(3, 6)
    books.in_use = 0
    room = SLOTS // 2
    books.t["produced"] += 0 if starved else min(made, room - _stock(books, "t"))
    books.q["produced"] += min(made, room - _stock(books, "q"))
    pairs = min(_stock(books, "t"), _stock(books, "q"))
    leave = 0 if starved or before_stall else 1
    for book in (books.t, books.q):
        book["consumed"] += max(0, pairs - leave)
    if before_stall:
        books.t["produced"] += 2
    if starved:
        books.failed += 1
        if not _stock(books, "q"):
            books.q["produced"] += 1


def _stock(books: _Books, side: str) -> int:
    return _held(books.t if side == "t" else books.q) - (books.leaked if side == "t" else 0)


def _held(book: Counter[str]) -> int:
    return book["produced"] - book["consumed"] - book["written_off"]


def _finish(books: _Books) -> None:
    """Use up the pairs in stock and write off the rest; what is leaked stays."""
    pairs = min(_stock(books, "t"), _stock(books, "q"))
    for side, book in (("t", books.t), ("q", books.q)):
        book["consumed"] += pairs
        book["written_off"] += _stock(books, side)


def _state(books: _Books, uptime: float) -> dict[str, Any]:
    t, q = books.side("t"), books.side("q")
    waiting = 2 if not t["depth"] or not q["depth"] else 0
    answered = books.q["produced"]
    requests = {"sent": answered + books.failed, "answered": answered, "failed": books.failed}
    return {
        "uptime": uptime,
        "t": t,
        "q": q,
        "physical": {"cap": 4, "free": 4, "held": 0, "waiting": 0},
        "q_pending": {"cap": 8, "free": 8, "held": 0, "waiting": 0},
        "claims": {"waiting": waiting, "age": 1.0 if waiting else None, "reserved": 0},
        "requests": {**requests, "given_up": 0, "in_flight": 0},
        "pairs": books.t["consumed"],
        "role_failures": {},
    }
