"""Runs of an orchestrator whose requests end, fail or hang as wanted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from stagewire_logs.testing.writing import Event, Stopwatch

STAGES = ("gather", "tokens", "audio")
"""The stages that each request goes through."""


@dataclass(frozen=True, slots=True)
class RequestFaults:
    """What goes wrong.

    Attributes:
        failed: Numbers of requests that fail in the second stage.
        hung: Numbers of requests of which nothing is heard after the first stage.
        lost_lease: After which request a lease is lost.
    """

    failed: frozenset[int] = frozenset()
    hung: frozenset[int] = frozenset()
    lost_lease: int | None = None


def request_run(
    seed: int,
    requests: int,
    faults: RequestFaults = RequestFaults(),
    *,
    pipeline: str = "speech",
    watch: Stopwatch | None = None,
) -> Iterator[Event]:
    """Yield the events of a run, one request after the other."""
    dice, watch = random.Random(seed), watch or Stopwatch()  # noqa: S311 — a repeatable log, no secret
    yield watch.event("info", "app.started", pipeline, version="0.1.0", kind="orchestrator")
    for number in range(requests):
        watch.forward(dice.uniform(0.001, 0.01))
        yield from _request(dice, watch, pipeline, number, faults)
        if number == faults.lost_lease:
            yield watch.event(
                "error", "lease.lost", pipeline, lease_id="lease-7", cause="LeaseLost: the server forgot it"
            )
    yield watch.event("info", "app.finished", pipeline, seconds=1.0, outputs=requests, failures=0, stopped=False)


def _request(
    dice: random.Random, watch: Stopwatch, pipeline: str, number: int, faults: RequestFaults
) -> Iterator[Event]:
    request, began = f"r-{number:07d}", watch.now
    yield watch.event("debug", "request.admitted", pipeline, request_id=request)
    for at, stage in enumerate(STAGES):
        ids = {"request_id": request, "stage": stage, "replica": number % 2}
        yield watch.event("debug", "stage.submitted", pipeline, **ids)
        if number in faults.hung and at:
            return
        seconds = round(dice.lognormvariate(-5 + at, 0.5), 6)
        watch.forward(seconds)
        if number in faults.failed and at:
            cause = f"process: ValueError: token {number} is out of range"
            took = round(watch.now - began, 6)
            yield watch.event(
                "warning", "request.failed", pipeline, request_id=request, stage=stage, seconds=took, cause=cause
            )
            return
        outputs = dice.randint(1, 40)
        yield watch.event("debug", "stage.ended", pipeline, **ids, outputs=outputs, seconds=seconds)
        if at == 0:
            edge = f"{STAGES[0]}->{STAGES[1]}"
            yield watch.event("debug", "stage.forwarded", pipeline, request_id=request, edge=edge, chunks=outputs)
    yield watch.event("info", "request.ended", pipeline, request_id=request, seconds=round(watch.now - began, 6))
